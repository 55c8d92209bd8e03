//! Live media over QUIC, in the way of Media over QUIC Transport
//! ([draft-ietf-moq-transport-19](https://datatracker.ietf.org/doc/html/draft-ietf-moq-transport-19)):
//! an application of the crate [`quinn`] that runs in virtual time ([`airpath_quinn`]) and on UDP
//! sockets.
//!
//! A [`Publisher`] sends a track of video and one of audio. Each frame is an object, and each group
//! has a stream of its own, which is reset when a delivery timeout is over. A [`Subscriber`]
//! requests the tracks and records when objects arrive; [`Figures`] has their delays, those that
//! were lost, and the pauses of a player. `docs/moq.md` lists what is left out.
//!
//! | module | contents |
//! | --- | --- |
//! | [`wire`] | integers of variable length, key-value pairs |
//! | [`message`] | control messages |
//! | [`subgroup`] | headers of data streams, objects |
//! | [`settings`] | settings of the media and of the session |
//! | [`media`] | tracks: frames in groups |
//! | [`clock`] | a clock that both ends share |
//! | [`session`] | control streams, settings of QUIC, errors |
//! | [`outgoing`] | the order of sending, delivery timeouts |
//! | [`publisher`], [`subscriber`] | the two ends |
//! | [`figures`] | what the subscriber reports |
//! | [`simulation`] | both ends in virtual time |
//!
//! ```
//! use std::path::Path;
//!
//! use airpath_moq::{Settings, simulation};
//! use airpath_scenario::Scenario;
//!
//! let text = "format = 1\n[bearer]\npreset = \"umts-dch-384\"";
//! let scenario = Scenario::read(text, "umts.toml", Path::new(""), &[])?;
//! let sets = [("video.duration".to_owned(), "10 s".to_owned())];
//! let simulated = simulation::run(&scenario, &Settings::read(&sets)?)?;
//! assert_eq!(simulated.figures.video.lost, 0);
//! println!("{}", simulated.figures);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod clock;
pub mod figures;
pub mod media;
pub mod message;
pub mod outgoing;
pub mod publisher;
pub mod session;
pub mod settings;
pub mod simulation;
pub mod subgroup;
pub mod subscriber;
pub mod wire;

pub use figures::Figures;
pub use publisher::Publisher;
pub use settings::Settings;
pub use subscriber::Subscriber;
