use super::*;
use crate::profile::shipped;

/// The generic part with the areas of another.
fn part(user_bytes: u64, wp_group_bytes: u32, enhanced_groups_max: u32) -> Profile {
    let mut profile = shipped::named("generic-8g").unwrap();
    profile.areas.user_bytes = user_bytes;
    profile.areas.wp_group_bytes = wp_group_bytes;
    profile.areas.enhanced_groups_max = enhanced_groups_max;
    profile
}

fn s0j56() -> Profile {
    part(31_080_448 * 512, 8 << 20, 939)
}

fn enhanced(groups: u64) -> Partitioning {
    Partitioning { enhanced_groups: groups, ..Partitioning::default() }
}

/// Every block is in one region, every unit of every area in one extent, and every region has its stated capacity.
fn check(profile: &Profile, layout: &Layout) {
    let mut blocks: Vec<u32> = layout.regions.iter().flat_map(|(_, spec)| spec.blocks.iter().copied()).collect();
    blocks.sort_unstable();
    assert_eq!(blocks, (0..layout.blocks).collect::<Vec<_>>());
    let geometry = Geometry::new(&profile.nand, layout.blocks, profile.ftl.unit_bytes);
    let unit = u64::from(profile.ftl.unit_bytes) / 512;
    for (role, spec) in &layout.regions {
        let kept = spec.spares + spec.slc_blocks + TRIM_LOG_BLOCKS;
        let data = u64::from(spec.blocks.len() as u32 - kept);
        let room = data * u64::from(geometry.units_in(spec.mode));
        assert!(room > u64::from(spec.units), "{role:?}: {room} for {}", spec.units);
        let areas = layout.user.iter().chain(layout.boot.iter().flatten());
        let areas = areas.chain(layout.rpmb.iter()).chain(layout.gp.iter().flatten());
        let mut runs: Vec<_> = areas
            .filter(|at| at.region == *role)
            .map(|at| (u64::from(at.first_unit), at.sectors.div_ceil(unit)))
            .collect();
        runs.sort_unstable();
        let end = runs.iter().fold(0, |next, (first, units)| {
            assert_eq!(*first, next, "{role:?}");
            first + units
        });
        assert_eq!(end, u64::from(spec.units), "{role:?}");
    }
    let end = layout.user.iter().fold(0, |next, extent| {
        assert_eq!(extent.first_sector, next);
        next + extent.sectors
    });
    assert_eq!(end, layout.user_sectors);
}

#[test]
fn published_parts_shrink_as_published() {
    for (profile, groups, before, after) in [
        (s0j56(), 939, 31_080_448, 15_384_576),
        (part(3_825_205_248, 4 << 20, 456), 456, 7_471_104, 1_912_602_624 / 512),
        // A part of three bits a cell: 1863 x 8 MiB groups, a third can be enhanced.
        (part(15_628_042_240, 8 << 20, 621), 621, 30_523_520, 621 * 16_384),
    ] {
        let factory = Layout::factory(&profile, 1).unwrap();
        assert_eq!(factory.user_sectors, before);
        check(&profile, &factory);
        let layout = Layout::new(&profile, &enhanced(groups), 1).unwrap();
        assert_eq!(layout.user_sectors, after);
        assert_eq!(layout.blocks, factory.blocks);
        assert!(layout.region(RegionRole::Main).is_none());
        assert_eq!(layout.region(RegionRole::Enhanced).unwrap().mode, CellMode::Pslc);
        check(&profile, &layout);
    }
}

#[test]
fn every_enhanced_size_keeps_the_blocks_and_costs_capacity() {
    let profile = s0j56();
    let factory = Layout::factory(&profile, 1).unwrap();
    let mut last = factory.user_sectors;
    for groups in (1..=939).step_by(7).chain([2, 937, 938, 939]) {
        let layout = Layout::new(&profile, &enhanced(groups), 1).unwrap();
        check(&profile, &layout);
        assert_eq!(layout.blocks, factory.blocks, "{groups}");
        assert!(layout.user_sectors >= 15_384_576 && layout.user_sectors < factory.user_sectors);
        assert_eq!(layout.user_sectors % 16_384, 0);
        if groups > 2 && groups < 900 {
            assert!(layout.user_sectors < last, "{groups}");
            last = layout.user_sectors;
        }
        let lost = (factory.user_sectors - layout.user_sectors) / 16_384;
        assert!(lost >= groups && lost <= groups + 20, "{groups} cost {lost}");
        let (system, before) = (layout.region(RegionRole::System), factory.region(RegionRole::System));
        assert_eq!(system, before, "the boot areas stay");
    }
}

#[test]
fn partitions_reduce_the_user_area() {
    let profile = s0j56();
    let partitioning = Partitioning {
        enhanced_start: 10,
        enhanced_groups: 100,
        gp_groups: [5, 0, 7, 1],
        gp_enhanced: [false, true, true, false],
    };
    let layout = Layout::new(&profile, &partitioning, 1).unwrap();
    check(&profile, &layout);
    assert_eq!(layout.gp.map(|gp| gp.map(|gp| gp.sectors)), [Some(5 * 16_384), None, Some(7 * 16_384), Some(16_384)]);
    assert_eq!(layout.gp[2].unwrap().region, RegionRole::Enhanced);
    assert_eq!(
        layout.user.iter().map(|run| run.region).collect::<Vec<_>>(),
        [RegionRole::Main, RegionRole::Enhanced, RegionRole::Main]
    );
    assert_eq!((layout.user[1].first_sector, layout.user[1].sectors), (10 * 16_384, 100 * 16_384));
    // 107 enhanced groups cost 217 (107 x 1897 / 939, rounded up), 6 plain ones 6.
    assert_eq!(layout.user_sectors, (1897 - 217 - 6 + 100) * 16_384);
}

#[test]
fn a_layout_that_does_not_fit_is_refused() {
    let profile = s0j56();
    let refused = |partitioning: Partitioning| Layout::new(&profile, &partitioning, 1).unwrap_err();
    assert_eq!(refused(enhanced(1897)), LayoutError::EnhancedBeyondMax { groups: 1897, max: 939 });
    let plain = Partitioning { gp_groups: [1000, 898, 0, 0], ..Partitioning::default() };
    assert_eq!(refused(plain), LayoutError::BeyondUserArea { sectors: 31_080_448 });
    let far = Partitioning { enhanced_start: 1898, enhanced_groups: 1, ..Partitioning::default() };
    assert_eq!(refused(far), LayoutError::BeyondUserArea { sectors: 31_080_448 });
    let huge = Partitioning { gp_groups: [u64::MAX; 4], ..Partitioning::default() };
    assert_eq!(refused(huge), LayoutError::BeyondUserArea { sectors: 31_080_448 });
    let mut tight = profile.clone();
    tight.nand.blocks = Some(100);
    assert!(matches!(Layout::factory(&tight, 1), Err(LayoutError::TooFewBlocks { role: RegionRole::Main, .. })));
    tight.nand.blocks = Some(Layout::factory(&profile, 1).unwrap().blocks + 100);
    assert_eq!(Layout::factory(&tight, 1).unwrap().blocks, tight.nand.blocks.unwrap());
}

#[test]
fn a_region_keeps_its_seed() {
    let profile = s0j56();
    let seeds = |layout: Layout| layout.regions.into_iter().map(|(role, spec)| (role, spec.seed)).collect::<Vec<_>>();
    let factory = seeds(Layout::factory(&profile, 7).unwrap());
    let parted = seeds(Layout::new(&profile, &enhanced(100), 7).unwrap());
    assert!(factory.iter().all(|region| parted.contains(region)));
    assert_ne!(factory, seeds(Layout::factory(&profile, 8).unwrap()));
}
