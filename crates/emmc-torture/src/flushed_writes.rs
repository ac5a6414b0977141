//! Writes before an acknowledged flush: the unit holds the write, or newer data; no cut and no pair undoes it.

use crate::content::Seen;
use crate::history::{Cut, Deed, History};

pub(crate) fn check(history: &History, seen: &Seen, cut: Cut) -> Result<(), String> {
    let written = |deed| matches!(deed, Deed::Write(_));
    let flushed = history.events.iter().rposition(|event| written(event.deed) && event.flushed <= cut.at);
    let Some(from) = flushed else { return Ok(()) };
    // Something newer without reliability may have been damaged, and it has taken the flushed content's place.
    let newer = history.events[from + 1..].iter().any(|event| event.done <= cut.at);
    let excused = newer && history.may_be_damaged(cut);
    if history.reaches(seen, from) || excused {
        return Ok(());
    }
    let event = &history.events[from];
    Err(format!("write {} was flushed at {} ns", event.stamp, event.flushed.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use emmc_card::ftl::Durability;
    use emmc_units::Instant;

    #[test]
    fn a_flush_makes_a_buffered_write_durable() {
        let mut history = History::new();
        history.push(Deed::Write(Durability::Buffered), 1);
        history.acknowledge(Instant(5));
        history.flush(Instant(10));
        history.push(Deed::Write(Durability::Buffered), 2);
        history.acknowledge(Instant(12));
        let cut = |at| Cut { at: Instant(at), pair_hit: true, unreliable: false };
        assert!(check(&history, &Seen::Stamp(0), cut(9)).is_ok());
        assert!(check(&history, &Seen::Stamp(1), cut(20)).is_ok());
        assert!(check(&history, &Seen::Stamp(2), cut(20)).is_ok());
        assert!(check(&history, &Seen::Stamp(0), cut(20)).is_err());
        assert!(check(&history, &Seen::Uncorrectable, cut(20)).is_err());
        // A write without reliability in its place may be damaged, and the flushed content be gone.
        history.push(Deed::Write(Durability::Flash), 3);
        history.acknowledge(Instant(15));
        let unreliable = |pair_hit| Cut { pair_hit, unreliable: true, ..cut(20) };
        assert!(check(&history, &Seen::Uncorrectable, unreliable(true)).is_ok());
        assert!(check(&history, &Seen::Uncorrectable, unreliable(false)).is_err());
    }
}
