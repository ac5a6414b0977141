//! What a user sees while content is saved and restored, and while it has no home.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use emmc_linux::block_io::Keeper;
use emmc_report::visible;
use emmc_workload::Watch;

use super::consent::say;
use crate::progress::Watched;
use crate::signals::{Wakes, stop_by_signal};

/// The time between two attempts to find a place for content.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// A progress bar; a wait that a signal ends.
pub(super) struct BarKeeper {
    stop: Arc<AtomicBool>,
    bar: Option<Watched>,
    waiting: Option<Waiting>,
}

/// For a signal that comes after the user was told.
struct Waiting {
    is_given_up: Arc<AtomicBool>,
    wakes: Wakes,
}

impl Waiting {
    fn new() -> anyhow::Result<Self> {
        let is_given_up = Arc::new(AtomicBool::new(false));
        stop_by_signal(&is_given_up)?;
        Ok(Self { is_given_up, wakes: Wakes::new()? })
    }

    /// Returns whether no signal came.
    fn wait(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if self.is_given_up.load(Ordering::Relaxed) || left.is_zero() {
                return !self.is_given_up.load(Ordering::Relaxed);
            }
            if self.wakes.wait(Some(left)).is_err() {
                return false;
            }
        }
    }
}

impl BarKeeper {
    /// `stop`: ends the saving; nothing ends the restore.
    pub(super) fn new(stop: &Arc<AtomicBool>) -> Self {
        Self { stop: Arc::clone(stop), bar: None, waiting: None }
    }

    /// Removes the bar; the next one belongs to the restore.
    pub(super) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish();
        }
        self.stop = Arc::default();
    }
}

impl Keeper for BarKeeper {
    fn watch(&mut self) -> &mut dyn Watch {
        let stop = &self.stop;
        self.bar.get_or_insert_with(|| Watched::new(Arc::clone(stop)))
    }

    fn wait(&mut self, why: &str) -> bool {
        if self.waiting.is_none() {
            let Ok(waiting) = Waiting::new() else { return false };
            say(&format!(
                "{}\nits content is now only in the memory of this process ({}), which waits: make space in one of \
these folders; Ctrl-C gives the content up",
                visible(why),
                std::process::id()
            ));
            self.waiting = Some(waiting);
        }
        self.waiting.as_ref().is_some_and(|waiting| waiting.wait(AGAIN_AFTER))
    }
}

impl Drop for BarKeeper {
    fn drop(&mut self) {
        self.finish();
    }
}
