//! Programs, erases and registers compared with their arithmetic.

use crate::jobs::{run_on, small};
use emmc_card::nand::{BlockHealth, CellMode};

#[test]
fn programs_are_host_writes_plus_copies_and_padding() {
    for cache in [false, true] {
        // With a flush, so that no unit is buffered.
        let random = format!("{{\"kind\": \"random\", \"amount\": \"6x\", \"cache\": {cache}}}");
        let (_, result) = run_on(small(), &format!("{{\"kind\": \"fill\"}}, {random}, {{\"kind\": \"flush\"}}"));
        let ftl = result.card.ftl;
        // Copies may be buffered until their stripe of eight units is full: the flash still has their sources.
        let waiting = ftl.host_units + ftl.copied_units + ftl.padding_units - result.run.work.nand_programs;
        assert!(waiting < 8, "cache {cache}: {waiting}");
        assert_eq!(
            result.run.work.write_amplification,
            Some(result.run.work.nand_programs as f64 / result.run.work.host_writes as f64)
        );
        assert_eq!(result.run.phases.iter().map(|phase| phase.work.copied_units).sum::<u64>(), ftl.copied_units);
        let wa = result.run.phases[1].work.write_amplification.unwrap();
        if cache {
            // Units that were written again while they waited reach the layer once.
            assert!(
                ftl.host_units < result.run.work.host_writes && ftl.host_units > result.run.work.host_writes * 98 / 100
            );
            // rho is slightly above 0.8 because of the free blocks, so the figure is slightly above 2.64.
            assert!((2.5..3.4).contains(&wa), "{wa}");
        } else {
            // A durable write cannot wait for a full page: three units of four are padding.
            assert_eq!(ftl.host_units, result.run.work.host_writes);
            assert!(ftl.padding_units > 2 * result.run.work.host_writes && wa > 8.0, "{ftl:?}");
        }
    }
}

#[test]
fn erases_are_programs_divided_by_block_size() {
    let (device, result) = run_on(small(), r#"{"kind": "fill"}, {"kind": "random", "amount": "10x"}"#);
    let nand = device.nand();
    let good = || nand.blocks().iter().zip(0u32..).filter(|(block, _)| block.health == BlockHealth::Good);
    // What has been programmed since its block was last erased, block by block, and the rest in whole blocks.
    let units_per_page = u64::from(nand.geometry().units_per_page);
    let since: u64 = good().map(|(block, _)| u64::from(block.next_page) * units_per_page).sum();
    let counted: u64 = good().map(|(block, _)| u64::from(block.erase_count)).sum();
    assert_eq!(counted, result.run.work.erases);
    let whole_blocks = (result.run.work.nand_programs - since) / u64::from(nand.geometry().units_per_block());
    assert!(result.run.work.erases > 1000, "{}", result.run.work.erases);
    // Every block of the main region was full when it was erased; only log blocks of the trim log may not have been.
    assert!(
        whole_blocks <= result.run.work.erases && result.run.work.erases <= whole_blocks + 2,
        "{} against {whole_blocks}",
        result.run.work.erases
    );
    assert_eq!(result.card.wear.histogram.iter().map(|bin| bin.blocks).sum::<u32>(), result.card.health.all.blocks);
    assert_eq!((result.card.wear.min, result.card.wear.max), (result.card.health.all.min, result.card.health.all.max));
}

#[test]
fn life_time_steps_at_the_computed_volumes() {
    let mut profile = small();
    profile.nand.native.endurance = 50;
    let share_of = |device: &emmc_card::device::Device| device.health().used_multi_bit.unwrap();
    // Sequential rewriting copies nothing, so mean erases = bytes written over the bytes of all rotating blocks.
    let mut passes_at_step = Vec::new();
    for passes in 1..=40u32 {
        let phases = format!("{{\"kind\": \"sequential\", \"amount\": \"{passes}x\", \"block\": \"512KiB\"}}");
        let (device, result) = run_on(profile.clone(), &phases);
        let band = (share_of(&device) * 10.0) as u8 + 1;
        assert_eq!(result.card.registers.life_time_b, Some(band.min(11)), "{passes} passes");
        let programmed = result.run.work.nand_programs as f64 / result.run.work.host_writes as f64;
        assert!((0.99..1.02).contains(&programmed), "{programmed}");
        let blocks = f64::from(result.card.health.multi_bit.blocks);
        let expected = (result.run.work.nand_programs as f64 / 128.0 - blocks).max(0.0) / blocks / 50.0;
        assert!((share_of(&device) - expected).abs() < 0.022, "{passes}: {} against {expected}", share_of(&device));
        if passes_at_step.len() + 1 < usize::from(band) {
            passes_at_step.push(passes);
        }
    }
    // A tenth of 50 erases of all blocks as passes over the user area; the first filling is free.
    assert!(passes_at_step.len() >= 4, "{passes_at_step:?}");
    let gaps: Vec<u32> = passes_at_step.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| (5..=8).contains(gap)), "{passes_at_step:?}");
}

#[test]
fn wear_levelling_keeps_the_spread_small() {
    let spread = |dynamic: bool, static_gap: u32| {
        let mut profile = small();
        profile.ftl.wear.dynamic = dynamic;
        profile.ftl.wear.static_gap = static_gap;
        // Nine tenths of the card are written once and then never again.
        let phases = r#"{"kind": "fill"}, {"kind": "random", "amount": "100x", "range": ["0%", "10%"]}"#;
        let (device, result) = run_on(profile, phases);
        let multi_bit = device.nand().blocks().iter().filter(|block| block.mode == CellMode::Mlc);
        let mut counts: Vec<u32> = multi_bit.map(|block| block.erase_count).collect();
        counts.sort_unstable();
        // Spare blocks and the log of trims do not rotate.
        let in_turn = &counts[result.card.health.spares as usize + 2..];
        let (least, most) = (in_turn[0], in_turn[in_turn.len() - 1]);
        (least, most, result.card.ftl.wear_moves)
    };
    let (least, most, moves) = spread(true, 20);
    assert!(most - least <= 30 && moves > 50, "{least} to {most}, {moves} moves");
    let (least, most, moves) = spread(true, 0);
    assert!(least <= 2 && most > 200 && moves == 0, "{least} to {most}, {moves} moves");
}
