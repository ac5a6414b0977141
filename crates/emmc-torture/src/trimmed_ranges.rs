//! Trimmed units read as erased, or hold newer data. Discarded units may hold their old content, or read as erased.

use crate::content::Seen;
use crate::history::{Cut, Deed, History};
use emmc_card::ftl::TrimKind;

pub(crate) fn check(history: &History, seen: &Seen, cut: Cut) -> Result<(), String> {
    let trimmed = |deed| deed == Deed::Trim(TrimKind::Trim);
    let held = history.events.iter().rposition(|event| trimmed(event.deed) && event.done <= cut.at);
    let Some(from) = held else { return Ok(()) };
    let newer = history.events[from + 1..].iter().any(|event| event.done <= cut.at);
    let excused = newer && history.may_be_damaged(cut);
    if history.reaches(seen, from) || excused {
        return Ok(());
    }
    Err(format!("a trim was acknowledged at {} ns", history.events[from].done.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use emmc_card::ftl::Durability;
    use emmc_units::Instant;

    fn history(kind: TrimKind) -> History {
        let mut history = History::new();
        for stamp in [1, 2] {
            history.push(Deed::Write(Durability::Reliable), stamp);
            history.acknowledge(Instant(stamp));
        }
        history.push(Deed::Trim(kind), 0);
        history.acknowledge(Instant(10));
        history
    }

    fn cut(at: u64) -> Cut {
        Cut { at: Instant(at), pair_hit: false, unreliable: true }
    }

    #[test]
    fn a_trim_persists_and_a_discard_can_be_lost() {
        let trimmed = history(TrimKind::Trim);
        assert!(check(&trimmed, &Seen::Stamp(2), cut(9)).is_ok());
        assert!(check(&trimmed, &Seen::Stamp(0), cut(10)).is_ok());
        assert!(check(&trimmed, &Seen::Stamp(2), cut(10)).is_err());
        let discarded = history(TrimKind::Discard);
        for seen in [Seen::Stamp(0), Seen::Stamp(1), Seen::Stamp(2)] {
            assert!(check(&discarded, &seen, cut(10)).is_ok());
            assert!(crate::acknowledged_writes::check(&discarded, &seen, cut(10)).is_ok());
        }
        assert!(crate::acknowledged_writes::check(&discarded, &Seen::Stamp(3), cut(10)).is_err());
    }

    #[test]
    fn a_later_write_ends_the_trim() {
        let mut history = history(TrimKind::Trim);
        history.push(Deed::Write(Durability::Buffered), 3);
        assert!(check(&history, &Seen::Stamp(3), cut(20)).is_ok());
        assert!(check(&history, &Seen::Stamp(1), cut(20)).is_err());
    }
}
