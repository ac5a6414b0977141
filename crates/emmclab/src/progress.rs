//! How far long work is: a bar on a terminal after a second, else a line on standard error now and then.
//!
//! Lines are left out where standard error is read by a program (`--json`), and for work of a few seconds.

#[cfg(feature = "bench")]
use std::sync::Arc;
#[cfg(feature = "bench")]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[cfg(feature = "bench")]
use emmc_workload::{Progress, Watch};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// No bar for work that is shorter.
const BAR_AFTER: Duration = Duration::from_secs(1);
/// No line for work that is shorter, nor sooner after the line before.
const LINE_AFTER: Duration = Duration::from_secs(5);
/// The same for work of which nobody knows the end.
const ENDLESS_LINE_AFTER: Duration = Duration::from_secs(30);
/// Lines come at each of so many parts of the whole.
const PARTS: f64 = 10.0;

/// Set once at the start: standard error holds JSON or nothing.
static IS_QUIET: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// From here on standard error gets no lines of progress: a program reads it.
pub(crate) fn be_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Shows how far something is.
pub(crate) struct Bar {
    begun: Instant,
    bar: Option<ProgressBar>,
    lines: Lines,
    /// It never goes back.
    share: f64,
}

impl Bar {
    /// Nothing is shown before the work has taken a while.
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), bar: None, lines: Lines::default(), share: 0.0 }
    }

    /// Shows the share of the work that is done, where its end is known, and what is done now.
    pub(crate) fn show(&mut self, share: Option<f64>, what: &str) {
        let elapsed = self.begun.elapsed();
        if elapsed < BAR_AFTER {
            return;
        }
        let share = share.map(|share| share.clamp(self.share, 1.0));
        self.share = share.unwrap_or(self.share);
        let bar = self.bar.get_or_insert_with(|| new_bar(share.is_some()));
        if !bar.is_hidden() {
            bar.set_message(what.to_owned());
            match share {
                Some(share) => bar.set_position((share * 1000.0) as u64),
                // How far it is nobody knows; that it goes on is seen.
                None => bar.tick(),
            }
        } else if !IS_QUIET.load(Ordering::Relaxed) {
            if let Some(line) = self.lines.line(elapsed, share, what) {
                // Where standard error is gone there is nobody to tell.
                let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("emmclab: {line}\n").as_bytes());
            }
        }
    }

    /// Takes the bar off the screen.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// When a line is due, and what it says.
#[derive(Debug, Default)]
struct Lines {
    last: Duration,
    parts: f64,
}

impl Lines {
    fn line(&mut self, elapsed: Duration, share: Option<f64>, what: &str) -> Option<String> {
        let after = if share.is_some() { LINE_AFTER } else { ENDLESS_LINE_AFTER };
        if elapsed < self.last + after {
            return None;
        }
        let line = match share {
            Some(share) => {
                let parts = (share * PARTS).floor();
                if parts <= self.parts {
                    return None;
                }
                self.parts = parts;
                format!("{:.0} % done after {} s: {what}", share * 100.0, elapsed.as_secs())
            }
            None => format!("under way for {} s: {what}", elapsed.as_secs()),
        };
        self.last = elapsed;
        Some(line)
    }
}

/// Watches a bench, shows how far it is, and stops it when told to.
#[cfg(feature = "bench")]
pub(crate) struct Watched {
    bar: Bar,
    stop: Arc<AtomicBool>,
}

#[cfg(feature = "bench")]
impl Watched {
    /// A bar that stops the bench when `stop` is set.
    pub(crate) fn new(stop: Arc<AtomicBool>) -> Self {
        Self { bar: Bar::new(), stop }
    }

    /// Takes the bar off the screen.
    pub(crate) fn finish(&self) {
        self.bar.finish();
    }
}

#[cfg(feature = "bench")]
impl Watch for Watched {
    fn progress(&mut self, progress: Progress<'_>) -> bool {
        let Progress { step, number, steps, .. } = progress;
        let of = if steps > 0 { format!("/{steps}") } else { String::new() };
        self.bar.show(progress.share(), &format!("step {number}{of}: {step}"));
        !self.stop.load(Ordering::Relaxed)
    }
}

/// With how far it is and how long it will take where that is known, else with how long it has taken.
fn new_bar(has_end: bool) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr_with_hz(8));
    let template = if has_end { "{bar:30} {percent:>3}%  {msg}  {eta} left" } else { "{spinner} {msg}  {elapsed}" };
    // The template is a constant that is known to be good.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_with_each_tenth_but_not_too_often() {
        let mut lines = Lines::default();
        let mut at = |seconds, share| lines.line(Duration::from_secs(seconds), share, "writing");
        assert_eq!(at(4, Some(0.9)), None, "short work");
        assert_eq!(at(5, Some(0.04)), None, "not a tenth yet");
        assert_eq!(at(6, Some(0.129)).unwrap(), "13 % done after 6 s: writing");
        assert_eq!(at(9, Some(0.5)), None, "too soon");
        assert_eq!(at(12, Some(0.19)), None, "the same tenth");
        assert_eq!(at(13, Some(1.0)).unwrap(), "100 % done after 13 s: writing");
        assert_eq!(at(60, Some(1.0)), None, "nothing more to say");
        assert_eq!((at(40, None), at(43, None).is_some()), (None, true), "no end is known");
    }
}
