//! What most of the time goes to beside the card's own work, as sentences.

use super::groups::Group;
use super::result::Reason;
use crate::correlate::Commands;

/// From here on it is named as a cause. Unit: percent of all requests' time.
const NAMED_PERCENT: f64 = 25.0;

/// Journals and flushes.
pub(super) fn reasons(rows: &[Reason]) -> Vec<String> {
    let all: f64 = rows.iter().map(|row| row.waited_ms).sum();
    let named = [
        ("journal", "requests of the journal", "an fsync waits for the commit of the file system"),
        ("flush", "flushes of the card's cache", "each fsync asks for one while the cache is on"),
    ];
    let cause = |(why, what, says): (&str, &str, &str)| {
        let row = rows.iter().find(|row| row.why == why)?;
        let percent = 100.0 * row.waited_ms / all;
        (percent >= NAMED_PERCENT)
            .then(|| format!("{} {what} have {percent:.0} % of all requests' time: {says}", row.requests))
    };
    named.into_iter().filter_map(cause).collect()
}

/// Waiting behind other requests without a queue in the card, and a queue that software works.
pub(super) fn queue(groups: &[Group], commands: &Commands) -> Option<String> {
    if commands.software_tasks > 0 {
        return Some(format!(
            "{} tasks were queued by software (CMD44 and CMD45): each needs commands of its own, which a queue engine \
             in the controller saves",
            commands.software_tasks
        ));
    }
    let sum = |of: fn(&Group) -> u128| groups.iter().map(of).sum::<u128>() as f64;
    let percent = 100.0 * sum(Group::waited_ns) / sum(Group::total_ns).max(1.0);
    let is_named = commands.count > 0 && commands.queued_tasks == 0 && percent >= NAMED_PERCENT;
    is_named.then(|| {
        format!(
            "requests spend {percent:.0} % of their time behind others: no command queue is in use, and the card takes \
             one at a time"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_quarter_of_the_time_is_named() {
        let row = |why: &str, waited_ms: f64| Reason {
            why: why.into(),
            requests: 3,
            read_bytes: 0,
            written_bytes: 4096,
            waited_ms,
            threads: Vec::new(),
        };
        let found = reasons(&[row("direct I/O", 60.0), row("journal", 25.0), row("flush", 15.0)]);
        assert_eq!(
            found,
            [
                "3 requests of the journal have 25 % of all requests' time: an fsync waits for the commit of the file system"
            ]
        );
        assert!(reasons(&[]).is_empty());
    }
}
