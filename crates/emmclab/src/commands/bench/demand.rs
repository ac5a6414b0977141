//! The demand of a suite on a target, printed before the first write: bytes, time, share of the card's rated life.

use emmc_units::{Bytes, Nanos};
use emmc_workload::Cost;
use emmc_workload::context::{Context, Wear};

use super::consent::say;

/// The demand of a run.
pub(super) struct Demand<'a> {
    pub(super) suite: &'a str,
    pub(super) cost: Cost,
    /// The suite's own limit.
    pub(super) time_most: Option<Nanos>,
    /// Written in addition to the suite: to fill a new file, to restore saved content. Unit: bytes.
    pub(super) beside_bytes: u64,
    pub(super) context: &'a Context,
    pub(super) capacity_bytes: u64,
    /// Rated erase cycles of the card; `None`: assumed.
    pub(super) cycles: Option<u32>,
}

impl Demand<'_> {
    /// Two lines.
    pub(super) fn text(&self) -> String {
        let written_bytes = self.cost.written_bytes.saturating_add(self.beside_bytes);
        let (written, read) = (Bytes(written_bytes).rounded(), Bytes(self.cost.read_bytes).rounded());
        let least = match &self.context.bus {
            Some(bus) => {
                let bytes = written_bytes.saturating_add(self.cost.read_bytes) as f64;
                let rest = self.cost.rest.as_secs_f64();
                let least = bytes / 1e6 / bus.mb_per_s_max.max(1e-3) + rest;
                let rests = if rest > 0.0 { format!(" and {rest:.0} s of rests") } else { String::new() };
                format!("at least {least:.0} s at the bus's {:.0} MB/s{rests}", bus.mb_per_s_max)
            }
            None => "the time is not known, because the speed of the bus is not known".into(),
        };
        let time = match (self.time_most, &self.context.bus) {
            (None, _) => least,
            (Some(most), None) => format!("at most {:.0} s", most.as_secs_f64()),
            (Some(most), Some(_)) => format!("{least}, at most {:.0} s", most.as_secs_f64()),
        };
        let wear = Wear::of(written_bytes, self.capacity_bytes, self.cycles);
        let assumed = if wear.cycles_assumed { "an assumed " } else { "" };
        format!(
            "suite {}: writes up to {written}, reads up to {read}; {time}\nwear: {:.4} % of the card's rated life, {:.3} \
times its capacity at {assumed}{} erase cycles",
            self.suite, wear.life_percent, wear.capacities, wear.cycles
        )
    }

    /// Prints it to standard error, for a target that loses no content.
    pub(super) fn announce(&self, name: &str, is_quiet: bool) {
        if !is_quiet && self.cost.written_bytes.saturating_add(self.beside_bytes) > 0 {
            say(&format!("{name}\n  {}", self.text().replace('\n', "\n  ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use emmc_workload::context::BusFacts;

    use super::*;

    #[test]
    fn bytes_time_and_share_of_life_are_printed() {
        let bus = Some(BusFacts { mb_per_s_max: 100.0, ..BusFacts::default() });
        let context = Context { bus, ..Context::default() };
        let cost = Cost { written_bytes: 1 << 30, read_bytes: 1 << 30, ..Cost::default() };
        let mut demand = Demand {
            suite: "speed",
            cost,
            time_most: None,
            beside_bytes: 1 << 30,
            context: &context,
            capacity_bytes: 8 << 30,
            cycles: None,
        };
        assert_eq!(
            demand.text(),
            "suite speed: writes up to 2.0 GiB, reads up to 1.0 GiB; at least 32 s at the bus's 100 MB/s\n\
wear: 0.0250 % of the card's rated life, 0.250 times its capacity at an assumed 1000 erase cycles"
        );
        let unknown = Context::default();
        demand.time_most = Some(Nanos::from_millis(90_000));
        assert!(demand.text().contains("at least 32 s at the bus's 100 MB/s, at most 90 s"));
        demand.cost.rest = Nanos::from_secs(30);
        assert!(demand.text().contains("at least 62 s at the bus's 100 MB/s and 30 s of rests, at most 90 s"));
        demand.time_most = None;
        (demand.context, demand.cycles) = (&unknown, Some(3000));
        let text = demand.text();
        assert!(
            text.contains("time is not known") && text.contains("0.0083 %") && text.ends_with("at 3000 erase cycles")
        );
    }
}
