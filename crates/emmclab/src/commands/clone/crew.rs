//! Threads that work on pieces while the caller supplies and takes them: results come in the order of the pieces.
//!
//! A thread has a state of its own, such as a handle of a card, so that some wait for the card while others compute.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use anyhow::Context;

use super::place::Place;

/// Pieces in memory per thread: enough that none waits for the caller.
const AHEAD: u64 = 4;
const THREADS_MAX: usize = 8;
/// Threads more than processors, where they also wait for a card: its queue is not empty while others compute.
const WAITING: usize = 2;

fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX)
}

/// Threads that only compute: one for each processor.
pub(super) fn computing() -> Vec<()> {
    vec![(); processors()]
}

/// Handles of a place for threads that read or write it.
///
/// Errors: those of [`Place::another`].
pub(super) fn handles(place: &dyn Place) -> anyhow::Result<Vec<Box<dyn Place>>> {
    (0..processors() + WAITING).map(|_| place.another()).collect()
}

/// Calls `next` until there are no more pieces, `work` on each in the thread of some state, `done` with the results in
/// the order of the pieces.
///
/// Errors: those of `next` and `done`; no thread. A panic in `work` is passed on.
pub(super) fn ordered<S: Send, T: Send, U: Send>(
    states: Vec<S>,
    mut next: impl FnMut() -> anyhow::Result<Option<T>>,
    work: impl Fn(&mut S, T) -> U + Sync,
    mut done: impl FnMut(U) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let threads = states.len() as u64;
    thread::scope(|scope| {
        let (give, taken) = mpsc::channel::<(u64, T)>();
        let (back, results) = mpsc::channel();
        let taken = std::sync::Arc::new(Mutex::new(taken));
        for mut state in states {
            let (taken, back, work) = (std::sync::Arc::clone(&taken), back.clone(), &work);
            scope.spawn(move || {
                loop {
                    let piece = taken.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((number, piece)) = piece else { return };
                    let result = catch_unwind(AssertUnwindSafe(|| work(&mut state, piece)));
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
            while is_more && given - finished < AHEAD * threads {
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
        let slow = |own: &mut u64, number: u64| {
            *own += 1;
            (number..500).for_each(|_| thread::yield_now());
            number * 2
        };
        ordered(
            vec![0; 5],
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
            computing(),
            || Ok(numbers.next()),
            |(): &mut (), number| number,
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
        let work = |(): &mut (), number: u64| assert_ne!(number, 3, "the fourth");
        let caught = catch_unwind(AssertUnwindSafe(|| ordered(computing(), || Ok(numbers.next()), work, |()| Ok(()))));
        let text = caught.unwrap_err().downcast::<String>().unwrap();
        assert!(text.contains("the fourth"), "{text}");
    }
}
