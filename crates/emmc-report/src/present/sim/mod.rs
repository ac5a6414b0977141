//! The virtual card: results of a run, and internals.

mod charts;
mod internals;
mod run;

pub use internals::inside;
pub use run::sim_run;

use emmc_card::device::Health;

use crate::KeyValue;

/// A number with separated thousands.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// Seconds in a readable unit.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s if s < 600.0 => format!("{s:.2} s"),
        s if s < 7200.0 => format!("{:.1} min", s / 60.0),
        s if s < 3.0 * 86400.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86400.0),
    }
}

/// Microseconds in a readable unit.
pub(super) fn micros(us: f64) -> String {
    duration(us / 1e6)
}

/// Wear and spares.
fn health(health: &Health, life: [Option<u8>; 3]) -> Vec<KeyValue> {
    let mut rows = Vec::new();
    let mut used = |name: &str, share: Option<f64>, blocks: u32| {
        if let Some(share) = share {
            let value = format!("{:.2} % of the rated erases used", share * 100.0);
            rows.push(KeyValue::new(name, value).note(format!("{blocks} blocks")));
        }
    };
    used("blocks as built", health.used_multi_bit, health.multi_bit.blocks);
    used("blocks with one bit per cell", health.used_single_bit, health.single_bit.blocks);
    let bad = format!("{} from the factory, {} since", health.factory_bad, health.grown_bad);
    rows.push(KeyValue::new("bad blocks", bad));
    rows.push(KeyValue::new("spare blocks left", format!("{} of {}", health.spares_left, health.spares)));
    let [a, b, pre_eol] = life;
    for (name, value) in
        [("DEVICE_LIFE_TIME_EST_TYP_A", a), ("DEVICE_LIFE_TIME_EST_TYP_B", b), ("PRE_EOL_INFO", pre_eol)]
    {
        if let Some(value) = value {
            rows.push(KeyValue::new(name, format!("0x{value:02x}")));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_for_reading() {
        assert_eq!([0, 999, 1_000, 12_345_678].map(count), ["0", "999", "1 000", "12 345 678"]);
        let shown = [12e-6, 0.5, 90.0, 900.0, 7_200.0, 864_000.0].map(duration);
        assert_eq!(shown, ["12.0 us", "500.00 ms", "90.00 s", "15.0 min", "2.0 h", "10.0 days"]);
    }
}
