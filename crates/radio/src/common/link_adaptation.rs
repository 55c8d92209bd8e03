//! Link adaptation of LTE and NR: block errors from the signal-to-noise ratio, soft combining,
//! choice of CQI and of the modulation and coding scheme, outer loop.
//!
//! | module | what |
//! | --- | --- |
//! | [`modulation`] | modulations, and formats: a modulation with a code rate |
//! | [`information`] | mean and variance of the information of a symbol over the signal-to-noise ratio |
//! | [`segmentation`] | code blocks of a transport block |
//! | [`block_errors`] | error probability of a block without a decoder, and the ratio that a block needs |
//! | [`soft_combining`] | the transmissions of a block: Chase and incremental redundancy |
//! | [`selection`] | the CQI that a mobile reports, the format that a base station selects |
//! | [`outer_loop`] | correction of the reports from acknowledgements |

pub mod block_errors;
pub mod information;
pub mod modulation;
pub mod outer_loop;
pub mod segmentation;
pub mod selection;
pub mod soft_combining;

pub use block_errors::{Block, Decoder};
pub use modulation::{Format, Modulation};
pub use outer_loop::OuterLoop;
pub use segmentation::Coding;
pub use selection::Thresholds;
pub use soft_combining::{Combining, FirstErrors, SoftBuffer};
