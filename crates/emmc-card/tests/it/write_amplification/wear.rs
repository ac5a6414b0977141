//! Wear: erases follow exactly from programs, and each policy has its spread of erase counts.

use emmc_card::ftl::Ftl;
use emmc_card::profile::GcPolicy;

use crate::write_amplification::drive::{Drive, Setup};

/// Mean, standard deviation, least and most of the erase counts.
fn spread(drive: &Drive) -> (f64, f64, u32, u32) {
    let counts: Vec<u32> = drive.nand.blocks().iter().map(|block| block.erase_count).collect();
    let mean = counts.iter().map(|&count| f64::from(count)).sum::<f64>() / counts.len() as f64;
    let variance = counts.iter().map(|&count| (f64::from(count) - mean).powi(2)).sum::<f64>() / counts.len() as f64;
    let (least, most) = (counts.iter().min().copied().unwrap_or(0), counts.iter().max().copied().unwrap_or(0));
    (mean, variance.sqrt(), least, most)
}

fn worn(setup: Setup, rounds: u64) -> Drive {
    let mut drive = Drive::new(setup);
    drive.fill();
    let writes = rounds * u64::from(drive.units());
    drive.uniform(writes);
    drive
}

#[test]
fn erases_are_programs_divided_by_block_size_exactly() {
    for gc in [GcPolicy::Greedy, GcPolicy::Fifo, GcPolicy::DChoices(2), GcPolicy::CostBenefit] {
        let drive = worn(Setup::new(gc, 0.8, 64, 512), 10);
        let counters = drive.nand.counters();
        // A block is erased when it is taken again, and was full: programmed pages are erased pages plus present ones.
        let there: u64 = drive.nand.blocks().iter().map(|block| u64::from(block.next_page) * 4).sum();
        assert_eq!(counters.unit_programs, counters.erases * 64 + there, "{gc:?}");
        let counted: u64 = drive.nand.blocks().iter().map(|block| u64::from(block.erase_count)).sum();
        assert_eq!(counted, counters.erases, "{gc:?}");
        // And from the host's side: all placed units were programmed, except for buffered ones.
        let stats = drive.ftl.stats();
        let waiting = stats.host_units + stats.copied_units - counters.unit_programs;
        assert!(waiting < 8, "{gc:?}: {waiting}");
        assert_eq!(counters.violations, 0);
    }
}

#[test]
fn wear_spread_depends_on_the_policy() {
    // Published for 4096 blocks, at a mean of 35: from 33 to 38, deviation 0.67.
    let (mean, deviation, least, most) = spread(&worn(Setup::new(GcPolicy::Greedy, 0.873, 512, 1024), 10));
    println!("greedy: mean {mean:.1} deviation {deviation:.2} from {least} to {most}");
    assert!((mean - 35.0).abs() < 1.0 && (deviation - 0.67).abs() < 0.07 && least >= 33 && most <= 38);
    let (mean, _, least, most) = spread(&worn(Setup::new(GcPolicy::Fifo, 0.8, 64, 2048), 13));
    println!("FIFO: mean {mean:.1} from {least} to {most}");
    assert!(mean > 25.0 && most - least <= 1);
    // Poisson: the deviation is the root of the mean. Published for a mean of 31 and more blocks: from 13 to 56,
    // deviation 5.6.
    let (mean, deviation, least, most) = spread(&worn(Setup::new(GcPolicy::DChoices(1), 0.8, 64, 2048), 7));
    println!("random: mean {mean:.1} deviation {deviation:.2} from {least} to {most}");
    assert!(mean > 25.0 && (deviation / mean.sqrt() - 1.0).abs() < 0.1);
    assert!(least < 17 && most > 41);
}
