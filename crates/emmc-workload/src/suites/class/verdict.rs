//! The classes that are met, and the reasons against the others.

use super::super::Bench;
use super::Found;
use crate::result::Figure;

/// Longest write that is not too long a busy time. Unit: milliseconds.
const BUSY_MS: f64 = 250.0;
/// Of a FAT update: mean of eight, and the longest, which may come once in eight.
const FAT_MEAN_MS: f64 = 100.0;
const FAT_LONGEST_MS: f64 = 750.0;
const FAT_READ_MS: f64 = 20.0;
/// Sustained speed for A1 and A2. Unit: MB/s.
const SUSTAINED: f64 = 10.0;

/// Class, Pw, and Pm if required. Pm from memory. Unit: MB/s.
const SPEED: [(&str, f64, Option<f64>); 6] = [
    ("C2", 2.0, Some(1.0)),
    ("C4", 4.0, Some(2.0)),
    ("C6", 6.0, Some(3.0)),
    ("C10", 10.0, None),
    ("U1", 10.0, None),
    ("U3", 30.0, None),
];

/// What prevents a class; empty: it is met.
#[derive(Debug, Default)]
struct Faults(Vec<String>);

impl Faults {
    fn at_least(&mut self, what: &str, found: f64, needed: f64, unit: &str) {
        if found < needed {
            self.0.push(format!("{what} {found:.1} {unit}, needs {needed}"));
        }
    }

    fn at_most(&mut self, what: &str, found: f64, allowed: f64, unit: &str) {
        if found > allowed {
            self.0.push(format!("{what} {found:.1} {unit}, at most {allowed}"));
        }
    }
}

fn speed(found: &Found, pw: f64, pm: Option<f64>) -> Faults {
    let mut faults = Faults::default();
    faults.at_least("Pw", found.pw, pw, "MB/s");
    if let (Some(needed), Some(moved)) = (pm, found.pm) {
        faults.at_least("Pm", moved, needed, "MB/s");
    }
    faults.at_least("Pr", found.pr, pw, "MB/s");
    faults.at_most("T_FW over eight", found.fat_mean_ms, FAT_MEAN_MS, "ms");
    faults.at_most("T_FW", found.fat_longest_ms, FAT_LONGEST_MS, "ms");
    if found.fat_slow_of_eight > 1 {
        faults.0.push(format!("{} slow FAT updates among eight, at most 1", found.fat_slow_of_eight));
    }
    faults.at_most("T_FR", found.fat_read_ms, FAT_READ_MS, "ms");
    faults.at_most("busy", found.busy_ms, BUSY_MS, "ms");
    faults
}

fn application(found: &Found, class: &str) -> Faults {
    let (depth, [read, write], needed) = match class {
        "A1" => (1, found.one, [1500.0, 500.0]),
        _ => (found.depth, found.many, [4000.0, 2000.0]),
    };
    let mut faults = Faults::default();
    faults.at_least(&format!("4 KiB reads at queue depth {depth}"), read, needed[0], "IOPS");
    faults.at_least(&format!("4 KiB writes at queue depth {depth}"), write, needed[1], "IOPS");
    faults.at_least("sustained", found.sustained, SUSTAINED, "MB/s");
    faults
}

/// Reports figures and classes; for a cancelled run the figures measured, and no class.
pub(super) fn tell(bench: &mut Bench<'_>, found: &Found, is_whole: bool) {
    let measured = |value: f64| (is_whole || value > 0.0).then_some(value);
    bench.figure(Figure::new("Pw", measured(found.pw), "MB/s", "the slowest AU"));
    let note = match found.pm {
        Some(_) => "moving the remaining data of an AU",
        None if !is_whole => "the run ended before",
        None => "moving the remaining data of an AU took no time: whole units are mapped, nothing moves",
    };
    bench.figure(Figure::new("Pm", found.pm, "MB/s", note));
    bench.figure(Figure::new("Pr", measured(found.pr), "MB/s", "single random RUs"));
    let note = "a write of 512 KiB, its transfer included";
    bench.figure(Figure::new("busy, longest", measured(found.busy_ms), "ms", note));
    bench.figure(Figure::new("sustained", measured(found.sustained), "MB/s", "sequential 512 KiB writes"));
    if !is_whole {
        bench.remark("No class: the run ended before everything was measured.");
        return;
    }
    let speeds = SPEED.map(|(class, pw, pm)| (class, speed(found, pw, pm)));
    let applications = ["A1", "A2"].map(|class| (class, application(found, class)));
    let mut passed = Vec::new();
    for (class, Faults(faults)) in speeds.into_iter().chain(applications) {
        let passes = faults.is_empty();
        if passes {
            passed.push(class);
        }
        let note = if passes { "passes".to_string() } else { format!("fails: {}", faults.join("; ")) };
        bench.figure(Figure::new(class, f64::from(u8::from(passes)), "", note));
    }
    let passed = if passed.is_empty() { "none".to_string() } else { passed.join(", ") };
    bench.remark(format!("Passed: {passed}. Figures of a class are 1 where it is passed, 0 where not."));
    if found.depth > 1 && found.many[0] < 1.1 * found.one[0] {
        bench.remark(format!(
            "Reads at queue depth {} are no faster than one at a time: the card or its host has no command queue, which A2 \
             needs.",
            found.depth
        ));
    }
    bench.remark("From memory, not checked in the standard's text: Pm of C2 to C6, the parts of a FAT update, the area of A1 and A2.");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Found {
        Found {
            pw: 31.0,
            pm: Some(15.0),
            pr: 80.0,
            fat_mean_ms: 10.0,
            fat_longest_ms: 20.0,
            fat_slow_of_eight: 0,
            fat_read_ms: 1.0,
            busy_ms: 60.0,
            sustained: 31.0,
            one: [1600.0, 600.0],
            many: [4100.0, 1900.0],
            depth: 32,
        }
    }

    #[test]
    fn each_limit_fails_the_class_alone() {
        assert!(speed(&good(), 30.0, None).0.is_empty());
        for (change, what) in [
            ((|found| found.pw = 29.0) as fn(&mut Found), "Pw 29.0"),
            (|found| found.pr = 29.0, "Pr 29.0"),
            (|found| found.fat_mean_ms = 101.0, "T_FW over eight"),
            (|found| found.fat_longest_ms = 751.0, "T_FW 751"),
            (|found| found.fat_slow_of_eight = 2, "2 slow FAT updates"),
            (|found| found.fat_read_ms = 21.0, "T_FR 21"),
            (|found| found.busy_ms = 251.0, "busy 251"),
        ] {
            let mut found = good();
            change(&mut found);
            let faults = speed(&found, 30.0, None).0;
            assert!(faults.len() == 1 && faults[0].contains(what), "{faults:?}");
        }
        let slow = Found { pm: Some(0.9), ..good() };
        assert_eq!(speed(&slow, 2.0, Some(1.0)).0.len(), 1);
        assert!(speed(&Found { pm: None, ..good() }, 2.0, Some(1.0)).0.is_empty());
    }

    #[test]
    fn a2_needs_a_queue_and_a1_does_not() {
        assert!(application(&good(), "A1").0.is_empty());
        let faults = application(&good(), "A2").0;
        assert_eq!(faults, ["4 KiB writes at queue depth 32 1900.0 IOPS, needs 2000"]);
    }
}
