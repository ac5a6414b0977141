//! Threads that work on pieces while the caller reads and writes: results come in the order of the pieces.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use anyhow::Context;

/// Pieces in memory per thread: enough that none waits for the caller.
const AHEAD: u64 = 4;
const THREADS_MAX: usize = 8;

/// Calls `next` until there are no more pieces, `work` on each in some thread, `done` with the results in order.
///
/// Errors: those of `next` and `done`; no thread.
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
                    if back.send((number, work(piece))).is_err() {
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
            done(result)?;
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
            thread::sleep(std::time::Duration::from_micros(500 - number));
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
}
