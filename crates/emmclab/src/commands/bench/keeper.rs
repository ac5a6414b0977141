//! What a user sees while content is saved and restored, and while it has no home.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use emmc_linux::block_io::Keeper;
use emmc_workload::Watch;

use super::consent::say;
use crate::progress::Watched;
use crate::signals::stop_by_signal;

/// The time between two attempts to find a place for content.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The time between two looks for a signal meanwhile.
const LOOK_AFTER: Duration = Duration::from_millis(50);

/// A progress bar; a wait that a signal ends.
pub(super) struct BarKeeper {
    stop: Arc<AtomicBool>,
    bar: Option<Watched>,
    /// Set by a signal that came after the user was told.
    given_up: Option<Arc<AtomicBool>>,
}

impl BarKeeper {
    /// `stop`: ends the saving; nothing ends the restore.
    pub(super) fn new(stop: &Arc<AtomicBool>) -> Self {
        Self { stop: Arc::clone(stop), bar: None, given_up: None }
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
        if self.given_up.is_none() {
            let given_up = Arc::new(AtomicBool::new(false));
            if stop_by_signal(&given_up).is_err() {
                return false;
            }
            say(&format!(
                "{why}\nits content is now only in the memory of this process ({}), which waits: make \
space in one of these folders; Ctrl-C gives the content up",
                std::process::id()
            ));
            self.given_up = Some(given_up);
        }
        let begun = Instant::now();
        let is_given_up = || self.given_up.as_ref().is_some_and(|signal| signal.load(Ordering::Relaxed));
        while begun.elapsed() < AGAIN_AFTER && !is_given_up() {
            std::thread::sleep(LOOK_AFTER);
        }
        !is_given_up()
    }
}

impl Drop for BarKeeper {
    fn drop(&mut self) {
        self.finish();
    }
}
