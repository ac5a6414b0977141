//! A whole life until the card is worn out.

use emmc_card::device::{Area, StorageError, WriteFlags};
use emmc_card::ftl::FtlError;
use emmc_units::Instant;
use emmc_workload::job::Ended;

use crate::jobs::{run_more, run_on, small};

fn mortal() -> emmc_card::profile::Profile {
    let mut profile = small();
    profile.nand.native.endurance = 30;
    profile.nand.native.endurance_spread = 0.1;
    profile
}

#[test]
fn a_worn_out_card_is_read_only() {
    let (mut device, result) =
        run_on(mortal(), r#"{"kind": "fill"}, {"kind": "random", "amount": "until worn out"}, {"kind": "flush"}"#);
    assert_eq!(result.run.ended, Ended::WornOut);
    assert_eq!(result.run.phases.len(), 2, "what comes after the end is not run");
    // The spares are used first: the worst blocks fail at the rating, slightly before the mean reaches it.
    assert!([Some(10), Some(11)].contains(&result.card.registers.life_time_b), "{:?}", result.card.registers);
    assert_eq!(result.card.registers.pre_eol_info, Some(3));
    assert_eq!(result.card.health.spares_left, 0);
    assert!(result.card.health.grown_bad > 0);
    let mean = result.card.health.multi_bit.mean();
    assert!((27.0..36.0).contains(&mean), "{mean}");
    assert!(device.is_worn_out());
    let now = result.run.now;
    let refused = device.write(Area::User, 0, 8, WriteFlags::default(), None, now).unwrap_err();
    assert_eq!(refused, StorageError::Ftl(FtlError::WornOut));
    assert!(device.read(Area::User, 0, 8, None, now).is_ok());
    // Reads continue, in a run too.
    let (_, result) = run_more(device, r#"{"kind": "random_read", "amount": "1MiB"}, {"kind": "fill"}"#, now);
    assert_eq!((result.run.phases[0].work.host_read_bytes, result.run.ended), (1 << 20, Ended::WornOut));
    assert_eq!(result.run.work.host_written_bytes, 0);
}

#[test]
fn a_run_on_a_used_card_counts_its_own_work_only() {
    let (device, first) = run_on(small(), r#"{"kind": "fill"}, {"kind": "random", "amount": "2x"}"#);
    let (_, second) = run_more(device, r#"{"kind": "random", "amount": "1x"}"#, first.run.now);
    assert_eq!(second.run.work.host_writes, 16384);
    assert!(second.run.work.nand_programs < first.run.work.nand_programs);
    assert!(second.card.nand.unit_programs == first.card.nand.unit_programs + second.run.work.nand_programs);
    assert!(second.run.now > first.run.now && first.run.now > Instant::START);
    let seconds = second.run.now.since(first.run.now).as_secs_f64();
    assert!((second.run.work.simulated_s - seconds).abs() < 1e-9);
}
