//! Whole lives against capacity x cycles / write amplification.

use emmc_twin::what_if::{Change, Life, LifeEnd, Written};

use crate::card::{RATED, RATED_SLC, UNITS, lived, rate, small};

/// Greedy collection of uniform random writes: Desnoyers, SYSTOR 2012. Lambert's W by Newton's method.
fn greedy(rho: f64, units: f64) -> f64 {
    let alpha = 1.0 / rho;
    let k = (1.0 + 1.0 / (2.0 * units)) * alpha;
    let x = -k * (-k).exp();
    let mut w = -0.5f64;
    for _ in 0..200 {
        w -= (w * w.exp() - x) / (w.exp() * (w + 1.0));
    }
    units / (units - (0.5 - units / alpha * w - 1.0))
}

/// The volume at which a register took a value. Unit: bytes.
fn at(life: &Life, register: &str, value: u8) -> f64 {
    let found = life.steps.iter().find(|step| step.register == register && step.value == value);
    found.unwrap_or_else(|| panic!("{register} {value}: {:?}", life.steps)).written_bytes as f64
}

const LIFE_B: &str = "DEVICE_LIFE_TIME_EST_TYP_B";

/// Bytes between two steps of a tenth, of the blocks that the register counts.
fn tenth(blocks: f64, rated: u32, units: u32) -> f64 {
    blocks * f64::from(units) * 4096.0 * f64::from(rated) / 10.0
}

/// Blocks of the main region as built: data with over-provisioning, the log of trims, spares.
const BLOCKS: f64 = 320.0 + 2.0 + 8.0;

#[test]
fn a_sequential_life_is_capacity_times_cycles() {
    let life = lived(&small(), &rate(0.0), 1);
    assert_eq!(life.ended, LifeEnd::ReadOnly);
    assert!((life.write_amplification - 1.0).abs() < 0.005, "{}", life.write_amplification);
    // Nine tenths lie between the second and the tenth value, whatever the filling at the start has used.
    let (from, to) = (at(&life, LIFE_B, 2), at(&life, LIFE_B, 9));
    let expected = 7.0 * tenth(BLOCKS, RATED, UNITS);
    assert!(((to - from) / expected - 1.0).abs() < 0.02, "{} against {expected}", to - from);
    assert!((life.written_over_arithmetic - 1.0).abs() < 0.05, "{}", life.written_over_arithmetic);
}

#[test]
fn a_random_life_is_capacity_times_cycles_over_the_known_amplification() {
    let life = lived(&small(), &rate(1.0), 1);
    // Without the free blocks that collection keeps, and the two open ones.
    let rho = 256.0 / (320.0 - 4.0 - 2.0);
    let known = greedy(rho, f64::from(UNITS));
    let (from, to) = (at(&life, LIFE_B, 3), at(&life, LIFE_B, 9));
    let expected = 6.0 * tenth(BLOCKS, RATED, UNITS) / known;
    assert!(((to - from) / expected - 1.0).abs() < 0.02, "{} against {expected}: {known}", to - from);
    assert!((life.write_amplification / known - 1.0).abs() < 0.04, "{} against {known}", life.write_amplification);
}

#[test]
fn one_bit_a_cell_gives_half_the_capacity_and_its_own_cycles() {
    let as_built = lived(&small(), &rate(0.0), 1);
    let mut question = rate(0.0);
    Change::parse("pslc=all").expect("it is known").apply(&mut question.today);
    let pslc = lived(&small(), &question, 1);
    let gain = pslc.written_bytes as f64 / as_built.written_bytes as f64;
    let configured = 0.5 * f64::from(RATED_SLC) / f64::from(RATED);
    assert!((gain / configured - 1.0).abs() < 0.05, "{gain} against {configured}");
}

#[test]
fn lives_of_specimens_spread_as_their_blocks_do() {
    let mut profile = small();
    profile.nand.native.endurance_spread = 0.3;
    let lives: Vec<Life> = (1..=4).map(|seed| lived(&profile, &rate(0.0), seed)).collect();
    let even = lived(&small(), &rate(0.0), 1);
    for life in &lives {
        // Endurance is above the rating by 0.3 |z|, so the eighth weakest of 330 blocks decides, not the mean.
        let ratio = life.written_bytes as f64 / even.written_bytes as f64;
        assert!((1.0..1.15).contains(&ratio), "{ratio}");
        assert_eq!((life.ended, life.grown_bad > 8), (LifeEnd::ReadOnly, true));
        let [warning, urgent] = [2, 3].map(|value| at(life, "PRE_EOL_INFO", value));
        assert!(warning <= urgent && urgent <= life.written_bytes as f64);
    }
    let (least, most) = lives.iter().fold((f64::MAX, 0.0f64), |(least, most), life| {
        (least.min(life.written_bytes as f64), most.max(life.written_bytes as f64))
    });
    assert!(most > least, "{least} to {most}");
}

/// A load that would need longer than anyone asks for ends after 500 years.
#[test]
fn a_small_load_ends_after_500_years() {
    let mut question = rate(1.0);
    let Written::Rate { bytes_per_day, .. } = &mut question.written else { panic!("{question:?}") };
    *bytes_per_day = 10.0;
    let life = lived(&small(), &question, 1);
    assert_eq!(life.ended, LifeEnd::Centuries);
    assert!((500.0..501.0).contains(&(life.days / 365.25)), "{}", life.days);
    assert!((life.program_bytes / life.days - 10.0).abs() < 0.01, "{life:?}");
}
