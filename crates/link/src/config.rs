//! Configuration of one direction of a link.

use std::path::PathBuf;
use std::sync::Arc;

use airpath_core::Bitrate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::delay::{Delay, DistributionError};
use crate::loss::{Loss, LossError};
use crate::policer::{Policer, PolicerError};
use crate::queue::{Discipline, Queue, QueueError};
use crate::recorded::{Recording, RecordingError};

/// One direction of a link: policer, queue, transmitter, loss, delay, in this order. A packet that
/// the policer passes waits in the queue, is sent at the rate, and is then lost or arrives after
/// the delay. A lost packet thus has used its transmission time, as on a real link, and is lost at
/// its last bit. (ns-2's `lossmodel` stands before the queue, its `link-lossmodel` behind, as
/// here.) The default is a link without delay, loss or limit.
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The rate. Without `rate` and `recorded` it is infinite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Bitrate>,
    /// A file of delivery opportunities, instead of `rate`: see [`Recording`]. A relative path is
    /// relative to the working directory; the reader of a scenario resolves it first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<PathBuf>,
    /// What a policer drops on entry, before the queue. By default it drops nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policer: Option<Policer>,
    /// The queue. By default 1,000 packets, as the transmit queue of an Ethernet interface in
    /// Linux; `{}` is a queue without a limit. A discipline needs `rate` or `recorded`; without
    /// them packets wait only in an outage, or when a change sets a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Which packets are lost.
    pub loss: Loss,
    /// The propagation delay.
    pub delay: Delay,
}

/// Limit of a queue that is not configured: the default `txqueuelen` of an Ethernet interface in
/// Linux (`ether_setup`). The memory of an overloaded link is thus bounded.
pub(crate) const DEFAULT_PACKETS: u32 = 1_000;

/// An invalid configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Both a rate and a recording.
    #[error("a link sends at a `rate` or as `recorded`, not both: remove one of them")]
    TwoRates,
    /// A queue without a transmitter.
    #[error(
        "a link without `rate` or `recorded` is infinitely fast, so that nothing ever waits: give it one of them, or remove `queue`"
    )]
    QueueWithoutRate,
    /// In [`Config::policer`].
    #[error(transparent)]
    Policer(#[from] PolicerError),
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
    /// Key of [`Config`] that causes the error.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::TwoRates | Self::Recording(_) => "recorded",
            Self::Policer(_) => "policer",
            Self::QueueWithoutRate | Self::Queue(_) => "queue",
            Self::Loss(_) => "loss",
            Self::Delay(_) => "delay",
        }
    }
}

impl Config {
    /// Checks the parameters together, and reads the recorded link, if any.
    pub fn prepare(&self) -> Result<Plan, ConfigError> {
        if self.rate.is_some() && self.recorded.is_some() {
            return Err(ConfigError::TwoRates);
        }
        let recording = self.recorded.as_deref().map(Recording::read).transpose()?;
        self.plan(recording.map(Arc::new))
    }

    /// The same with a given recording instead of a file or a rate.
    pub fn prepare_with(&self, recording: Arc<Recording>) -> Result<Plan, ConfigError> {
        if self.rate.is_some() || self.recorded.is_some() {
            return Err(ConfigError::TwoRates);
        }
        self.plan(Some(recording))
    }

    fn plan(&self, recording: Option<Arc<Recording>>) -> Result<Plan, ConfigError> {
        let mut config = self.clone();
        self.policer.as_ref().map_or(Ok(()), Policer::check)?;
        if self.rate.is_some() || recording.is_some() {
            config.queue.get_or_insert_with(|| Queue::of_packets(DEFAULT_PACKETS)).check()?;
        } else if let Some(queue) = &self.queue {
            // Its limit acts where the link gets a rate later, or stops.
            if queue.discipline != Discipline::DropTail {
                return Err(ConfigError::QueueWithoutRate);
            }
            queue.check()?;
        }
        self.loss.check()?;
        self.delay.distribution.check()?;
        Ok(Plan { config, recording })
    }
}

/// A valid [`Config`] with its file read, from which the links of all mobiles and repetitions are
/// made.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) config: Config,
    pub(crate) recording: Option<Arc<Recording>>,
}

impl Plan {
    /// The configuration.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Path of the recorded link, for a caller that moves the file. The recording read from it
    /// stays.
    pub const fn recorded_mut(&mut self) -> Option<&mut PathBuf> {
        self.config.recorded.as_mut()
    }

    /// The recorded link.
    pub fn recording(&self) -> Option<&Recording> {
        self.recording.as_deref()
    }
}
