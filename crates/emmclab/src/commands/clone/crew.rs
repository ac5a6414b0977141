//! Threads that work on pieces while the caller reads and writes: results come in the order of the pieces.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use anyhow::Context;

/// Pieces in memory per thread: enough that none waits for the caller.
const AHEAD: u64 = 4;
const THREADS_MAX: usize = 8;

/// Calls `next` until there are no more pieces, `work` on each in some thread, `done` with the results in order.
///
/// Errors: those of `next` and `done`; no thread. A panic in `work` is passed on.
pub(super) fn ordered<T: Send, U: Send>(
    mut next: impl FnMut() -> anyhow::Result<Option<T>>,
    work: impl Fn(T) -> U + Sync,
    mut done: impl FnMut(U) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    thread::scope(|scope| {
        let (give, taken) = mpsc::channel::<(u64, T)>();
        let (back, results) = mpsc::channel();
        let taken = std::sync::Arc::new(Mutex::new(taken));
        for _ in 0..threads {
            let (taken, back, work) = (std::sync::Arc::clone(&taken), back.clone(), &work);
            scope.spawn(move || {
                loop {
                    let piece = taken.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((number, piece)) = piece else { return };
                    let result = catch_unwind(AssertUnwindSafe(|| work(piece)));
                    let is_last = result.is_err();
                    if back.send((number, result)).is_err() || is_last {
                        return;
                    }
                }
            });
        }
        drop(back);
        let (mut given, mut finished, mut is_more) = (0, 0, true);
        let mut waiting = BTreeMap::new();
        loop {
            while is_more && given - finished < AHEAD * threads as u64 {
                match next()? {
                    Some(piece) => {
                        give.send((given, piece)).ok().context("a thread ended")?;
                        given += 1;
                    }
                    None => is_more = false,
                }
            }
            if given == finished {
                return Ok(());
            }
            let result = loop {
                if let Some(result) = waiting.remove(&finished) {
                    break result;
                }
                let (number, result) = results.recv().context("a thread ended")?;
                waiting.insert(number, result);
            };
            done(result.unwrap_or_else(|panic| resume_unwind(panic)))?;
            finished += 1;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_errors_end_the_work() {
        let mut numbers = 0..500u64;
        let mut found = Vec::new();
        let slow = |number: u64| {
            (number..500).for_each(|_| thread::yield_now());
            number * 2
        };
        ordered(
            || Ok(numbers.next()),
            slow,
            |number| {
                found.push(number);
                Ok(())
            },
        )
        .unwrap();
        assert_eq!(found, (0..500).map(|number| number * 2).collect::<Vec<_>>());
        let mut numbers = 0..500u64;
        let error = ordered(
            || Ok(numbers.next()),
            |number| number,
            |number| {
                anyhow::ensure!(number < 7, "no more");
                Ok(())
            },
        );
        assert_eq!(error.unwrap_err().to_string(), "no more");
    }

    #[test]
    fn a_panic_of_a_thread_reaches_the_caller() {
        let mut numbers = 0..500u64;
        let work = |number: u64| assert_ne!(number, 3, "the fourth");
        let caught = catch_unwind(AssertUnwindSafe(|| ordered(|| Ok(numbers.next()), work, |()| Ok(()))));
        let text = caught.unwrap_err().downcast::<String>().unwrap();
        assert!(text.contains("the fourth"), "{text}");
    }
}
