//! What a scenario says of one direction of a link.

use std::path::PathBuf;
use std::sync::Arc;

use airpath_core::{Bitrate, Seed};
use serde::{Deserialize, Serialize};

use crate::delay::{Delay, DistributionError};
use crate::loss::{Loss, LossError};
use crate::pipe::Pipe;
use crate::queue::{Queue, QueueError};
use crate::recorded::{Recording, RecordingError};

/// One direction of a link: queue, transmitter, loss, delay, in this order. A packet waits in the
/// queue, is sent at the rate, and is then lost or arrives after the delay. So what is lost has
/// taken its time on the link, as on a real one, and is lost when its last bit is out. (ns-2's
/// `lossmodel` stands before the queue, its `link-lossmodel` behind, as here.) The default is a
/// link without delay, loss or limit.
///
/// ```
/// use airpath_core::{Instant, Seed};
/// use airpath_link::{Config, Pipe};
///
/// let config: Config = toml::from_str(r#"
///     rate = "10 Mbit/s"
///     queue = { packets = 100 }
///     loss = 0.01
///     delay = "110 ms"
/// "#)?;
/// let path = Pipe::new(&config, Seed::new(1), "fixed/down")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How fast it sends. Without `rate` and `recorded` it is infinitely fast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Bitrate>,
    /// A file that says when it sends, instead of `rate`: see [`Recording`]. A relative path is
    /// taken from the working directory; whoever reads a scenario makes it relative to that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<PathBuf>,
    /// What waits to be sent; needs `rate` or `recorded`. Without it, any number of packets may
    /// wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Which packets are lost on the way.
    pub loss: Loss,
    /// How long a packet is on its way once it is sent.
    pub delay: Delay,
}

/// Why a link cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Two transmitters.
    #[error("a link sends at a `rate` or as `recorded`, not both: remove one of them")]
    TwoRates,
    /// A queue that never fills.
    #[error(
        "a link without `rate` or `recorded` is infinitely fast, so that nothing ever waits: give it one of them, or remove `queue`"
    )]
    QueueWithoutRate,
    /// In [`Config::queue`].
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// In [`Config::loss`].
    #[error(transparent)]
    Loss(#[from] LossError),
    /// In [`Config::delay`].
    #[error(transparent)]
    Delay(#[from] DistributionError),
    /// In [`Config::recorded`].
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

impl ConfigError {
    /// The key of [`Config`] that is to blame.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::TwoRates | Self::Recording(_) => "recorded",
            Self::QueueWithoutRate | Self::Queue(_) => "queue",
            Self::Loss(_) => "loss",
            Self::Delay(_) => "delay",
        }
    }
}

impl Config {
    /// Checks that the parameters make sense together, and reads the recorded link, if there is
    /// one.
    pub fn prepare(&self) -> Result<Plan, ConfigError> {
        if self.rate.is_some() && self.recorded.is_some() {
            return Err(ConfigError::TwoRates);
        }
        let recording = self.recorded.as_deref().map(Recording::read).transpose()?;
        self.plan(recording.map(Arc::new))
    }

    /// The same for a link that sends by this recording instead of a file or a rate.
    pub fn prepare_with(&self, recording: Arc<Recording>) -> Result<Plan, ConfigError> {
        if self.rate.is_some() || self.recorded.is_some() {
            return Err(ConfigError::TwoRates);
        }
        self.plan(Some(recording))
    }

    fn plan(&self, recording: Option<Arc<Recording>>) -> Result<Plan, ConfigError> {
        if let Some(queue) = &self.queue {
            queue.check()?;
            if self.rate.is_none() && recording.is_none() {
                return Err(ConfigError::QueueWithoutRate);
            }
        }
        self.loss.check()?;
        self.delay.distribution.check()?;
        Ok(Plan { config: self.clone(), recording })
    }
}

/// A [`Config`] that is known to be sound, with its file read: links are made from it as often as
/// there are mobiles and repetitions.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) config: Config,
    pub(crate) recording: Option<Arc<Recording>>,
}

impl Plan {
    /// The link, in its first state. Its generator streams are `name/loss` and `name/delay` of
    /// `seed`.
    pub fn pipe(&self, seed: Seed, name: &str) -> Pipe {
        Pipe::from_plan(self, seed, name)
    }

    /// What it was made from.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Where the recorded link lies, for whoever moves the file. What was read of it stays.
    pub const fn recorded_mut(&mut self) -> Option<&mut PathBuf> {
        self.config.recorded.as_mut()
    }

    /// The recorded link that it sends by.
    pub fn recording(&self) -> Option<&Recording> {
        self.recording.as_deref()
    }
}
