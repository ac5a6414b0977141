//! Unacknowledged writes are atomic per unit: a unit never reads as a mixture, as another unit, or as something that
//! was never written to it, and is unreadable only if that is allowed.

use crate::content::Seen;
use crate::history::{Cut, History};

pub(crate) fn check(history: &History, seen: &Seen, cut: Cut) -> Result<(), String> {
    match seen {
        Seen::Garbage(what) => Err(format!("no write made this: {what}")),
        Seen::Stamp(stamp) if !history.was(*stamp) => Err("it was never written to this unit".into()),
        Seen::Uncorrectable if !history.lost && !history.may_be_damaged(cut) => {
            Err("it was neither lost before nor at risk".into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Deed;
    use emmc_card::ftl::Durability;
    use emmc_units::Instant;

    #[test]
    fn a_unit_has_the_content_of_one_of_its_writes() {
        let mut history = History::new();
        history.push(Deed::Write(Durability::Flash), 4);
        let cut = Cut { at: Instant(100), pair_hit: false, unreliable: true };
        assert!(check(&history, &Seen::Stamp(4), cut).is_ok());
        assert!(check(&history, &Seen::Stamp(0), cut).is_ok());
        assert!(check(&history, &Seen::Stamp(5), cut).is_err());
        assert!(check(&history, &Seen::Garbage("half of each".into()), cut).is_err());
        assert!(check(&history, &Seen::Uncorrectable, cut).is_err());
        assert!(check(&history, &Seen::Uncorrectable, Cut { pair_hit: true, ..cut }).is_ok());
        history.settle(&Seen::Uncorrectable, Instant(100));
        assert!(check(&history, &Seen::Uncorrectable, cut).is_ok());
    }
}
