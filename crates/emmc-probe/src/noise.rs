//! A target whose times are disturbed: jitter, spikes, bursts of other traffic, and drift.
//!
//! What a host adds to the times of a card, for tests of what a probe still finds. Absent on purpose: errors.

use emmc_port::{BlockContent, BlockDone, BlockRequest, BlockTarget, TargetError, TargetFill, TargetShape};
use emmc_units::{Instant, Nanos, Rng};

/// How much the times are disturbed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Mean of an exponential delay of every request, as a share of its time.
    pub jitter_share: f64,
    /// Mean of another one. Unit: microseconds.
    pub jitter_us: f64,
    /// The share of requests that are hit by a spike.
    pub spike_share: f64,
    /// Mean of an exponential delay by a spike. Unit: milliseconds.
    pub spike_ms: f64,
    /// The share of time with other traffic, which doubles the times, in bursts of fifty requests.
    pub traffic_share: f64,
    /// How much slower the end of each thousand requests is than its start.
    pub drift: f64,
}

impl Noise {
    /// None at all.
    pub const NONE: Self =
        Self { jitter_share: 0.0, jitter_us: 0.0, spike_share: 0.0, spike_ms: 0.0, traffic_share: 0.0, drift: 0.0 };
    /// An idle host.
    pub const LOW: Self =
        Self { jitter_share: 0.01, jitter_us: 4.0, spike_share: 0.001, spike_ms: 10.0, traffic_share: 0.0, drift: 0.0 };
    /// A host with some work.
    pub const MIDDLE: Self = Self {
        jitter_share: 0.03,
        jitter_us: 15.0,
        spike_share: 0.01,
        spike_ms: 20.0,
        traffic_share: 0.02,
        drift: 0.05,
    };
    /// A busy host.
    pub const HIGH: Self =
        Self { jitter_share: 0.1, jitter_us: 40.0, spike_share: 0.04, spike_ms: 40.0, traffic_share: 0.1, drift: 0.15 };
}

/// A target behind noise.
#[derive(Debug)]
pub struct NoisyTarget<T> {
    inner: T,
    noise: Noise,
    rng: Rng,
    requests: u64,
    burst: bool,
}

impl<T: BlockTarget> NoisyTarget<T> {
    /// The same seed disturbs in the same way.
    pub fn new(inner: T, noise: Noise, seed: u64) -> Self {
        Self { inner, noise, rng: Rng::new(seed), requests: 0, burst: false }
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.rng.unit_f64()).ln()
    }

    /// Delays a completion.
    fn disturbed(&mut self, mut done: BlockDone) -> Result<BlockDone, TargetError> {
        let noise = self.noise;
        let time = done.latency().as_micros_f64();
        if self.requests % 50 == 0 {
            self.burst = self.rng.unit_f64() < noise.traffic_share;
        }
        let along = (self.requests % 1000) as f64 / 1000.0;
        self.requests += 1;
        let mut delay = self.exponential(time * noise.jitter_share) + self.exponential(noise.jitter_us);
        delay += time * noise.drift * along;
        if self.burst {
            delay += self.exponential(time);
        }
        if self.rng.unit_f64() < noise.spike_share {
            delay += self.exponential(noise.spike_ms * 1e3);
        }
        let delay = Nanos::from_micros_f64(delay);
        if delay > Nanos::ZERO {
            self.inner.idle(delay)?;
            done.done = done.done + delay;
        }
        Ok(done)
    }
}

impl<T: BlockTarget> BlockTarget for NoisyTarget<T> {
    fn shape(&self) -> &TargetShape {
        self.inner.shape()
    }

    fn now(&mut self) -> Instant {
        self.inner.now()
    }

    fn submit(&mut self, request: BlockRequest) -> Result<(), TargetError> {
        self.inner.submit(request)
    }

    fn wait(&mut self) -> Result<BlockDone, TargetError> {
        let done = self.inner.wait()?;
        self.disturbed(done)
    }

    fn complete(&mut self, request: BlockRequest) -> Result<BlockDone, TargetError> {
        let done = self.inner.complete(request)?;
        self.disturbed(done)
    }

    fn idle(&mut self, time: Nanos) -> Result<(), TargetError> {
        self.inner.idle(time)
    }

    fn fill(&self) -> Option<TargetFill> {
        self.inner.fill()
    }

    fn takes_flushes(&self) -> bool {
        self.inner.takes_flushes()
    }

    fn content(&mut self) -> Option<&mut dyn BlockContent> {
        if self.inner.content().is_some() { Some(self) } else { None }
    }
}

impl<T: BlockTarget> BlockContent for NoisyTarget<T> {
    fn read_into(&mut self, offset_bytes: u64, into: &mut [u8]) -> Result<BlockDone, TargetError> {
        let shape = self.inner.shape().name.clone();
        let content = self.inner.content().ok_or_else(|| no_content(shape))?;
        let done = content.read_into(offset_bytes, into)?;
        self.disturbed(done)
    }

    fn write_from(&mut self, offset_bytes: u64, data: &[u8], through: bool) -> Result<BlockDone, TargetError> {
        let shape = self.inner.shape().name.clone();
        let content = self.inner.content().ok_or_else(|| no_content(shape))?;
        let done = content.write_from(offset_bytes, data, through)?;
        self.disturbed(done)
    }
}

fn no_content(name: String) -> TargetError {
    TargetError::Failed { name, reason: "stores no data".into() }
}
