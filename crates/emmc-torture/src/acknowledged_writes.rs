//! Acknowledged writes: the unit holds the write, or newer data.
//!
//! Reliable: in every case. Flash (write reliability off): unless a pair of its page was interrupted before a flush;
//! then it may be uncorrectable, or hold any earlier content.

use crate::content::Seen;
use crate::history::{Cut, Deed, History};
use emmc_card::ftl::Durability;

pub(crate) fn check(history: &History, seen: &Seen, cut: Cut) -> Result<(), String> {
    let promised = |deed| matches!(deed, Deed::Found | Deed::Write(Durability::Flash | Durability::Reliable));
    let acknowledged = history.events.iter().rposition(|event| promised(event.deed) && event.done <= cut.at);
    let Some(from) = acknowledged else { return Ok(()) };
    let damaged = history.may_be_damaged(cut) || from == 0 && history.lost;
    let harmless = *seen == Seen::Uncorrectable || matches!(*seen, Seen::Stamp(stamp) if history.was(stamp));
    if history.reaches(seen, from) || damaged && harmless {
        return Ok(());
    }
    let event = &history.events[from];
    Err(format!("{:?} of write {} was acknowledged at {} ns", event.deed, event.stamp, event.done.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use emmc_card::ftl::TrimKind;
    use emmc_units::Instant;

    fn cut(at: u64, pair_hit: bool) -> Cut {
        Cut { at: Instant(at), pair_hit, unreliable: true }
    }

    fn written(durability: Durability) -> History {
        let mut history = History::new();
        for stamp in [1, 2, 3] {
            history.push(Deed::Write(durability), stamp);
            history.acknowledge(Instant(10 * stamp));
        }
        history
    }

    #[test]
    fn writes_completed_before_the_cut_must_be_present() {
        let history = written(Durability::Reliable);
        assert!(check(&history, &Seen::Stamp(2), cut(25, true)).is_ok());
        assert!(check(&history, &Seen::Stamp(3), cut(25, true)).is_ok());
        for lost in [Seen::Stamp(1), Seen::Stamp(0), Seen::Uncorrectable] {
            assert!(check(&history, &lost, cut(25, true)).is_err(), "{lost:?}");
        }
    }

    #[test]
    fn paired_pages_excuse_unreliable_unflushed_writes_only() {
        let mut history = written(Durability::Flash);
        for lost in [Seen::Stamp(1), Seen::Stamp(0), Seen::Uncorrectable] {
            assert!(check(&history, &lost, cut(35, true)).is_ok(), "{lost:?}");
            assert!(check(&history, &lost, cut(35, false)).is_err(), "{lost:?}");
        }
        assert!(check(&history, &Seen::Stamp(9), cut(35, true)).is_err());
        history.flush(Instant(34));
        assert!(check(&history, &Seen::Uncorrectable, cut(35, true)).is_err());
    }

    #[test]
    fn buffered_writes_are_not_durable() {
        let history = written(Durability::Buffered);
        assert!(check(&history, &Seen::Stamp(0), cut(35, false)).is_ok());
        assert!(check(&history, &Seen::Stamp(2), cut(35, false)).is_ok());
    }

    #[test]
    fn content_found_after_a_cut_persists() {
        let mut history = written(Durability::Buffered);
        history.settle(&Seen::Stamp(2), Instant(35));
        assert!(check(&history, &Seen::Stamp(2), cut(50, false)).is_ok());
        for other in [Seen::Stamp(3), Seen::Stamp(1), Seen::Uncorrectable] {
            assert!(check(&history, &other, cut(50, false)).is_err(), "{other:?}");
        }
    }

    /// A sector in one mapping unit with an unreliable write is on the same page, with any content.
    #[test]
    fn found_content_is_as_durable_as_its_last_copy() {
        for (again, at_risk) in [(None, false), (Some(Durability::Reliable), false), (Some(Durability::Flash), true)] {
            let mut history = History::new();
            history.push(Deed::Trim(TrimKind::Trim), 0);
            history.acknowledge(Instant(10));
            if let Some(durability) = again {
                history.push_again(durability);
                history.acknowledge(Instant(20));
            }
            history.settle(&Seen::Stamp(0), Instant(35));
            assert_eq!(check(&history, &Seen::Uncorrectable, cut(50, true)).is_ok(), at_risk, "{again:?}");
            assert!(check(&history, &Seen::Uncorrectable, cut(50, false)).is_err(), "{again:?}");
        }
    }
}
