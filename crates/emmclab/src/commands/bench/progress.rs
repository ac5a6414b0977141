//! A progress bar, once a bench takes longer than a second of real time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use emmc_workload::{Progress, Watch};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Watches a bench, shows how far it is, and stops it when told to.
pub(super) struct Bar {
    begun: Instant,
    bar: Option<ProgressBar>,
    stop: Arc<AtomicBool>,
}

impl Bar {
    /// A bar that stops the bench when `stop` is set.
    pub(super) fn new(stop: Arc<AtomicBool>) -> Self {
        Self { begun: Instant::now(), bar: None, stop }
    }

    /// Takes the bar off the screen.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Watch for Bar {
    fn progress(&mut self, progress: Progress<'_>) -> bool {
        if self.bar.is_none() && self.begun.elapsed() > Duration::from_secs(1) {
            self.bar = Some(new_bar(progress.steps > 0));
        }
        if let Some(bar) = &self.bar {
            let (number, steps) = (progress.number, progress.steps);
            if steps > 0 {
                let done = (f64::from(number) - 1.0 + progress.done_share) / f64::from(steps);
                bar.set_position((done.min(1.0) * 1000.0) as u64);
                bar.set_message(format!("{number}/{steps} {}", progress.step));
            } else {
                // How far it is nobody knows; that it goes on is seen.
                bar.set_message(format!("{number} {}", progress.step));
                bar.tick();
            }
        }
        !self.stop.load(Ordering::Relaxed)
    }
}

/// With how far it is and how long it will take where that can be told, else with how long it has taken.
fn new_bar(has_end: bool) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr_with_hz(8));
    let template = if has_end { "{bar:30} {percent:>3}%  {msg}  {eta} left" } else { "{spinner} {msg}  {elapsed}" };
    // The template is a constant that is known to be good.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
