use emmc_regs::CardKind;

use crate::nand::CellMode;
use crate::profile::{
    Ageing, BusMode, GcPolicy, Mapping, MappingCache, MeasuringHost, Profile, ProfileError, Refresh, SdIdentity,
    Segment, SegmentOrder, SlcCache, shipped,
};

type Spoil = fn(&mut Profile);

fn good() -> Profile {
    shipped::named("generic-8g").unwrap()
}

/// A card that keeps the rules of SD.
fn sd(profile: &mut Profile) {
    profile.kind = CardKind::Sd;
    profile.identity.product = "SD08G".into();
    profile.identity.oem_id = 0x5344;
    profile.identity.firmware = String::new();
    profile.identity.sd = Some(SdIdentity { speed_class: 4, uhs_grade: 0, app_class: 0, au_bytes: 4 << 20 });
    profile.areas.user_bytes = 7456 << 20;
    (profile.areas.boot_bytes, profile.areas.rpmb_bytes, profile.areas.enhanced_groups_max) = (0, 0, 0);
    let controller = &mut profile.controller;
    (controller.cache_bytes, controller.queue_depth, controller.packed_commands) = (0, 0, 0);
    (controller.write_reliability, controller.auto_bkops) = (false, false);
    controller.bus_max = BusMode::SdHigh;
}

/// A part mapped by segments.
fn segment(profile: &mut Profile) {
    sd(profile);
    profile.ftl.mapping = Mapping::Segment;
    profile.ftl.separate_gc = false;
    profile.ftl.segment = Some(Segment {
        open_aus: 7,
        order: SegmentOrder::Linear,
        random_logs: 0,
        random_log_bytes: 0,
        steps_back: 0,
        merges_at_once: 1,
    });
}

fn ageing(profile: &mut Profile) -> &mut Ageing {
    profile.nand.ageing.insert(Ageing::default())
}

fn slc_cache(profile: &mut Profile) -> &mut SlcCache {
    profile.ftl.slc_cache.insert(SlcCache {
        blocks: 16,
        low_blocks: 2,
        bypass_bytes: 0,
        idle_fold: true,
        stream_fold_percent: 0,
    })
}

fn mapping_cache(profile: &mut Profile) -> &mut MappingCache {
    profile.ftl.mapping_cache.insert(MappingCache { pages: 32, units_per_page: 4096 })
}

fn register(profile: &mut Profile, name: &str, value: u64) {
    profile.registers.insert(name.into(), value);
}

/// Each spoils a good profile so that one rule breaks: the field that the error names, a word of its rule.
const IDENTITY_AND_AREAS: &[(&str, &str, Spoil)] = &[
    ("name", "a-z", |p| p.name = String::new()),
    ("name", "a-z", |p| p.name = "Generic 8G".into()),
    ("name", "a-z", |p| p.name = "-generic".into()),
    ("name", "1 to 40", |p| p.name = "g".repeat(41)),
    ("description", "one line", |p| p.description = "two\nlines".into()),
    ("sources", "lines of text", |p| p.sources.push("\u{1b}[31m".into())),
    ("identity.product", "1 to 6", |p| p.identity.product = "SEVENTH".into()),
    ("identity.product", "printable", |p| p.identity.product = "b\u{e4}r".into()),
    ("identity.product", "printable", |p| p.identity.product = "   ".into()),
    ("identity.month", "1 to 12", |p| p.identity.month = 13),
    ("identity.month", "1 to 12", |p| p.identity.month = 0),
    ("identity.year", "2010 to 2025", |p| p.identity.year = 2009),
    ("identity.year", "2026 to 2038", |p| p.identity.year = 2027),
    ("identity.ext_csd_rev", "5 to 9", |p| p.identity.ext_csd_rev = 4),
    ("identity.firmware", "at most 8", |p| p.identity.firmware = "TOO LONG!".into()),
    ("identity.firmware", "REV 7", |p| p.identity.ext_csd_rev = 6),
    ("identity.sd", "is for SD", |p| {
        p.identity.sd = Some(SdIdentity { speed_class: 4, uhs_grade: 0, app_class: 0, au_bytes: 4 << 20 });
    }),
    ("identity.sd", "is required", |p| {
        sd(p);
        p.identity.sd = None;
    }),
    ("identity.product", "1 to 5", |p| {
        sd(p);
        p.identity.product = "SD008G".into();
    }),
    ("identity.oem_id", "two ASCII letters", |p| {
        sd(p);
        p.identity.oem_id = 0x0100;
    }),
    ("identity.sd.speed_class", "2, 4, 6 or 10", |p| {
        sd(p);
        p.identity.sd.as_mut().unwrap().speed_class = 5;
    }),
    ("identity.sd.uhs_grade", "without a UHS", |p| {
        sd(p);
        p.identity.sd.as_mut().unwrap().uhs_grade = 3;
    }),
    ("identity.sd.app_class", "0 to 2", |p| {
        sd(p);
        p.identity.sd.as_mut().unwrap().app_class = 3;
    }),
    ("identity.sd.au_bytes", "AU_SIZE", |p| {
        sd(p);
        p.identity.sd.as_mut().unwrap().au_bytes = 3 << 20;
    }),
    ("areas.user_bytes", "1048576 to", |p| p.areas.user_bytes = 0),
    ("areas.user_bytes", "to 2199023255040", |p| p.areas.user_bytes = 5 << 50),
    ("areas.user_bytes", "multiple of 512", |p| p.areas.user_bytes += 1),
    ("areas.user_bytes", "CSD", |p| p.areas.user_bytes = (1 << 30) + 512),
    ("areas.user_bytes", "multiple of 524288", |p| {
        sd(p);
        p.areas.user_bytes += 4096;
    }),
    ("areas.boot_bytes", "0 on an SD card", |p| {
        sd(p);
        p.areas.boot_bytes = 4 << 20;
    }),
    ("areas.boot_bytes", "multiple of 131072", |p| p.areas.boot_bytes = 100_000),
    ("areas.boot_bytes", "0 to 33423360", |p| p.areas.boot_bytes = 32 << 20),
    ("areas.rpmb_bytes", "multiple of 131072", |p| p.areas.rpmb_bytes += 512),
    ("areas.rpmb_bytes", "0 to 16777216", |p| p.areas.rpmb_bytes = 32 << 20),
    ("areas.erase_group_bytes", "524288 to", |p| p.areas.erase_group_bytes = 0),
    ("areas.erase_group_bytes", "multiple of 524288", |p| p.areas.erase_group_bytes = 700_000),
    ("areas.wp_group_bytes", "multiple of 1048576", |p| {
        p.areas.erase_group_bytes = 1 << 20;
        p.areas.wp_group_bytes = 5 << 19;
    }),
    ("areas.wp_group_bytes", "524288 to", |p| p.areas.wp_group_bytes = 1 << 18),
    ("areas.enhanced_groups_max", "each takes 2", |p| p.areas.enhanced_groups_max = 467),
    ("areas.enhanced_groups_max", "each takes 3", |p| p.nand.cell = CellMode::Tlc),
    ("areas.enhanced_groups_max", "nothing can be enhanced", |p| {
        p.nand.cell = CellMode::Slc;
        p.nand.slc = None;
    }),
];

const NAND: &[(&str, &str, Spoil)] = &[
    ("nand.cell", "how the flash is built", |p| {
        p.nand.cell = CellMode::Pslc;
        p.areas.enhanced_groups_max = 0;
    }),
    ("nand.channels", "1 to 8", |p| p.nand.channels = 0),
    ("nand.dies", "1 to 64", |p| p.nand.dies = 0),
    ("nand.dies", "multiple of nand.channels", |p| (p.nand.channels, p.nand.dies) = (2, 3)),
    ("nand.planes", "1 to 8", |p| p.nand.planes = 0),
    ("nand.page_bytes", "512 to", |p| p.nand.page_bytes = 0),
    ("nand.page_bytes", "power of two", |p| p.nand.page_bytes = 12_288),
    ("nand.pages_per_block", "1 to", |p| p.nand.pages_per_block = 0),
    ("nand.pages_per_block", "2 lanes", |p| p.nand.pages_per_block = 255),
    ("nand.pages_per_block", "at least 4", |p| p.nand.pages_per_block = 2),
    ("nand.pages_per_block", "log of trims", |p| p.nand.pages_per_block = 24),
    ("nand.channel_mb_s", "5 to 4000", |p| p.nand.channel_mb_s = 0.0),
    ("nand.channel_mb_s", "5 to 4000", |p| p.nand.channel_mb_s = f64::INFINITY),
    ("nand.over_provisioning", "0 to 4", |p| p.nand.over_provisioning = 50.0),
    ("nand.over_provisioning", "0 to 4", |p| p.nand.over_provisioning = -0.1),
    ("nand.over_provisioning", "0 to 4", |p| p.nand.over_provisioning = f64::NAN),
    ("nand.over_provisioning", "blocks for data", |p| p.nand.over_provisioning = 0.0),
    ("nand.spare_blocks", "0 to 100000", |p| p.nand.spare_blocks = u32::MAX),
    ("nand.factory_bad_blocks", "nand.spare_blocks", |p| p.nand.factory_bad_blocks = 41),
    ("nand.blocks", "1 to", |p| p.nand.blocks = Some(0)),
    ("nand.blocks", "blocks for data", |p| p.nand.blocks = Some(1000)),
    ("nand.failures.program_ppb", "0 to 100000000", |p| p.nand.failures.program_ppb = 1_000_000_000),
    ("nand.failures.erase_ppm", "0 to 500000", |p| p.nand.failures.erase_ppm = 1_000_000),
    ("nand.native.read_us", "1 to", |p| p.nand.native.read_us = -60.0),
    ("nand.native.program_us", "10 to", |p| p.nand.native.program_us = vec![0.001]),
    ("nand.native.program_us", "1 to 2 times", |p| p.nand.native.program_us.clear()),
    ("nand.native.program_us", "1 to 2 times", |p| p.nand.native.program_us.push(2000.0)),
    ("nand.native.erase_ms", "0.1 to 1000", |p| p.nand.native.erase_ms = 0.0),
    ("nand.native.endurance", "1 to 1000000", |p| p.nand.native.endurance = 0),
    ("nand.native.endurance", "1 to 1000000", |p| p.nand.native.endurance = 4_000_000_000),
    ("nand.native.time_spread", "0 to 0.5", |p| p.nand.native.time_spread = 1.0),
    ("nand.native.endurance_spread", "0 to 1", |p| p.nand.native.endurance_spread = f64::NAN),
    ("nand.slc.endurance", "at least nand.native", |p| p.nand.slc.as_mut().unwrap().endurance = 100),
    ("nand.slc.program_us", "at most the slowest", |p| p.nand.slc.as_mut().unwrap().program_us = vec![2000.0]),
    ("nand.slc.program_us", "1 to 1 times", |p| p.nand.slc.as_mut().unwrap().program_us.push(300.0)),
    ("nand.slc", "absent with nand.cell slc", |p| {
        p.nand.cell = CellMode::Slc;
        p.nand.native.program_us = vec![250.0];
        p.areas.enhanced_groups_max = 0;
    }),
];

const FTL_AND_CONTROLLER: &[(&str, &str, Spoil)] = &[
    ("ftl.unit_bytes", "512 to", |p| p.ftl.unit_bytes = 0),
    ("ftl.unit_bytes", "power of two", |p| p.ftl.unit_bytes = 5000),
    ("ftl.unit_bytes", "divide nand.page_bytes", |p| p.ftl.unit_bytes = 32_768),
    ("ftl.unit_bytes", "32 bits", |p| {
        p.areas.user_bytes = (1 << 41) - (1 << 23);
        p.ftl.unit_bytes = 512;
    }),
    ("ftl.gc.d_choices", "1 to", |p| p.ftl.gc = GcPolicy::DChoices(0)),
    ("ftl.gc.windowed", "1 to", |p| p.ftl.gc = GcPolicy::Windowed(0)),
    ("ftl.gc_low_blocks", "3 to", |p| p.ftl.gc_low_blocks = 2),
    ("ftl.gc_busy_max_ms", "1 to", |p| p.ftl.gc_busy_max_ms = 0),
    ("ftl.gc_high_blocks", "more than ftl.gc_low_blocks", |p| p.ftl.gc_high_blocks = 4),
    ("ftl.wear.static_gap", "has no effect", |p| p.ftl.wear.static_gap = 3000),
    ("nand.ageing.program_faster", "0 to 0.9", |p| ageing(p).program_faster = 1.0),
    ("nand.ageing.erase_slower", "0 to", |p| ageing(p).erase_slower = -0.1),
    ("nand.ageing.retries_worn", "0 to 40", |p| ageing(p).retries_worn = 41.0),
    ("nand.ageing.retries_year", "0 to 40", |p| ageing(p).retries_year = f64::NAN),
    ("nand.ageing.retries_disturbed", "0 to 40", |p| ageing(p).retries_disturbed = -1.0),
    ("nand.ageing.endurance_below", "no effect", |p| {
        ageing(p).endurance_below = true;
        p.nand.native.endurance_spread = 0.0;
    }),
    ("ftl.refresh", "needs [nand.ageing]", |p| p.ftl.refresh = Some(Refresh { reads: 1000, days: 0 })),
    ("ftl.refresh", "or be absent", |p| {
        ageing(p);
        p.ftl.refresh = Some(Refresh::default());
    }),
    ("ftl.refresh.days", "0 to", |p| {
        ageing(p);
        p.ftl.refresh = Some(Refresh { reads: 0, days: 40_000 });
    }),
    ("ftl.segment", "ftl.mapping page", |p| {
        p.ftl.segment = Some(Segment {
            open_aus: 7,
            order: SegmentOrder::Linear,
            random_logs: 0,
            random_log_bytes: 0,
            steps_back: 0,
            merges_at_once: 1,
        });
    }),
    ("ftl.segment", "ftl.mapping segment", |p| p.ftl.mapping = Mapping::Segment),
    ("ftl.segment.open_aus", "1 to", |p| {
        segment(p);
        p.ftl.segment.as_mut().unwrap().open_aus = 0;
    }),
    ("ftl.segment.random_log_bytes", "without ftl.segment.random_logs", |p| {
        segment(p);
        p.ftl.segment.as_mut().unwrap().random_log_bytes = 4096;
    }),
    ("ftl.segment.steps_back", "without ftl.segment.random_logs", |p| {
        segment(p);
        p.ftl.segment.as_mut().unwrap().steps_back = 1;
    }),
    ("ftl.segment.merges_at_once", "1 to", |p| {
        segment(p);
        p.ftl.segment.as_mut().unwrap().merges_at_once = 0;
    }),
    ("ftl.segment.merges_at_once", "paced", |p| {
        segment(p);
        p.ftl.segment.as_mut().unwrap().merges_at_once = 2;
    }),
    ("ftl.hot_cold", "page mapping", |p| {
        segment(p);
        p.ftl.hot_cold = true;
    }),
    ("nand.over_provisioning", "blocks for data", |p| {
        segment(p);
        p.ftl.segment.as_mut().unwrap().open_aus = 500;
    }),
    ("areas.enhanced_groups_max", "segment mapping", |p| {
        p.ftl.mapping = Mapping::Segment;
        p.ftl.separate_gc = false;
        p.ftl.segment = Some(Segment {
            open_aus: 7,
            order: SegmentOrder::Linear,
            random_logs: 0,
            random_log_bytes: 0,
            steps_back: 0,
            merges_at_once: 1,
        });
    }),
    ("ftl.mapping_cache.pages", "1 to", |p| mapping_cache(p).pages = 0),
    ("ftl.mapping_cache.units_per_page", "1 to 4096", |p| mapping_cache(p).units_per_page = 4097),
    ("ftl.slc_cache.blocks", "4 to", |p| slc_cache(p).blocks = 3),
    ("ftl.slc_cache.low_blocks", "less than", |p| slc_cache(p).low_blocks = 16),
    ("ftl.slc_cache.bypass_bytes", "multiple of 512", |p| slc_cache(p).bypass_bytes = 1000),
    ("ftl.slc_cache.bypass_bytes", "at most 32768", |p| slc_cache(p).bypass_bytes = 65_536),
    ("ftl.slc_cache.stream_fold_percent", "0 to", |p| slc_cache(p).stream_fold_percent = 1001),
    ("ftl.slc_cache.stream_fold_percent", "without", |p| slc_cache(p).stream_fold_percent = 10),
    ("nand.slc", "ftl.slc_cache", |p| {
        slc_cache(p);
        p.nand.slc = None;
    }),
    ("ftl.slc_cache", "nand.cell slc", |p| {
        slc_cache(p);
        p.nand.cell = CellMode::Slc;
        p.nand.native.program_us = vec![250.0];
        (p.nand.slc, p.areas.enhanced_groups_max) = (None, 0);
    }),
    ("controller.read_overhead_us", "0 to", |p| p.controller.read_overhead_us = -1.0),
    ("controller.time_spread", "0 to 0.5", |p| p.controller.time_spread = 1.0),
    ("controller.small_write_bytes", "0 to", |p| p.controller.small_write_bytes = 1 << 20),
    ("controller.small_write_overhead_us", "needs controller.small_write_bytes", |p| {
        p.controller.small_write_overhead_us = 1.0;
    }),
    ("controller.read_missing_us_per_kib", "0 to", |p| p.controller.read_missing_us_per_kib = -1.0),
    ("controller.missing_us_per_kib", "0 to", |p| p.controller.missing_us_per_kib = f64::NAN),
    ("controller.merge_bytes", "multiple", |p| p.controller.merge_bytes = 5000),
    ("controller.merge_each_write", "needs controller.merge_bytes", |p| p.controller.merge_each_write = true),
    ("controller.small_page_bytes", "needs controller.small_write_bytes", |p| p.controller.small_page_bytes = 16_384),
    ("controller.small_page_bytes", "multiple", |p| {
        (p.controller.small_write_bytes, p.controller.small_page_bytes) = (65_536, 5000);
    }),
    ("controller.small_log_bytes", "needs controller.small_write_bytes", |p| p.controller.small_log_bytes = 65_536),
    ("controller.write_buffer_bytes", "is for SD", |p| p.controller.write_buffer_bytes = 65536),
    ("controller.commit_us", "needs controller.write_buffer_bytes", |p| p.controller.commit_us = 1.0),
    ("controller.map_load_us", "needs controller.map_span_bytes", |p| p.controller.map_load_us = 1.0),
    ("controller.map_spans", "at least 1", |p| p.controller.map_span_bytes = 4 << 20),
    ("host.command_kib", "4 to 32764", |p| {
        p.host = Some(MeasuringHost { command_kib: 0, ..MeasuringHost::default() });
    }),
    ("host.read_us", "0 to", |p| p.host = Some(MeasuringHost { read_us: -1.0, ..MeasuringHost::default() })),
    ("controller.write_overhead_us", "0 to", |p| p.controller.write_overhead_us = f64::NAN),
    ("controller.buffer_bytes", "16384 to", |p| p.controller.buffer_bytes = 4096),
    ("controller.read_ahead_bytes", "0 to 1048576", |p| p.controller.read_ahead_bytes = 1 << 21),
    ("controller.cache_bytes", "multiple of 128", |p| p.controller.cache_bytes = 100),
    ("controller.queue_depth", "0 to 32", |p| p.controller.queue_depth = 33),
    ("controller.packed_commands", "0 to 63", |p| p.controller.packed_commands = 64),
    ("controller.bus_max", "no bus mode of eMMC", |p| p.controller.bus_max = BusMode::Sdr104),
    ("controller.bus", "no bus mode of SD", |p| {
        sd(p);
        p.controller.bus = Some(BusMode::Hs52);
    }),
    ("controller.bus", "controller.bus_max", |p| {
        (p.controller.bus_max, p.controller.bus) = (BusMode::Ddr52, Some(BusMode::Hs200x4));
    }),
    ("controller.bus_clock_mhz", "0.4 to 200", |p| p.controller.bus_clock_mhz = Some(208.0)),
    ("controller.bus_clock_mhz", "0.4 to 200", |p| p.controller.bus_clock_mhz = Some(0.0)),
    ("controller.bus_max", "ext_csd_rev 7", |p| {
        (p.identity.ext_csd_rev, p.identity.firmware) = (6, String::new());
    }),
    ("controller.auto_bkops", "ext_csd_rev 8", |p| p.identity.ext_csd_rev = 7),
    ("controller.write_reliability", "not simulated on SD", |p| {
        sd(p);
        p.controller.write_reliability = true;
    }),
    ("controller.queue_depth", "not simulated on SD", |p| {
        sd(p);
        p.controller.queue_depth = 32;
    }),
    ("registers", "name of an EXT_CSD field", |p| register(p, "SEC_CONT", 1)),
    ("registers", "areas.user_bytes", |p| register(p, "SEC_COUNT", 1)),
    ("registers", "8 bits", |p| register(p, "REL_WR_SEC_C", 256)),
    ("registers", "SD has no EXT_CSD", |p| {
        sd(p);
        register(p, "REL_WR_SEC_C", 1);
    }),
];

#[test]
fn every_rule_names_its_field() {
    let tables = [IDENTITY_AND_AREAS, NAND, FTL_AND_CONTROLLER];
    assert!(tables.iter().map(|table| table.len()).sum::<usize>() > 100);
    for (index, (field, word, spoil)) in tables.into_iter().flatten().enumerate() {
        let mut profile = good();
        spoil(&mut profile);
        let error = profile.check().expect_err(field);
        let ProfileError::Rule { field: named, rule, .. } = &error else { panic!("{error}") };
        assert_eq!(named, field, "{index}: {error}");
        assert!(rule.contains(word), "{index} {field}: {word:?} is not in {error}");
        let line = error.to_string();
        assert!(!line.contains(char::is_control) && line.contains(field), "{line}");
    }
}

#[test]
fn the_base_of_the_invalid_profiles_is_valid() {
    let with_slc_cache: Spoil = |p| {
        slc_cache(p);
    };
    let with_mapping_cache: Spoil = |p| {
        mapping_cache(p);
    };
    let starts: [Spoil; 5] = [|_| {}, sd, segment, with_slc_cache, with_mapping_cache];
    for start in starts {
        let mut profile = good();
        start(&mut profile);
        assert_eq!(profile.check(), Ok(()));
    }
}
