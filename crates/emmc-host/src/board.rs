//! Boards for a virtual card.

use emmc_units::{Bytes, Nanos};

use crate::page_cache::PageCache;
use crate::platform::{PLATFORMS, Platform};
use crate::system::HostModel;
use crate::{Access, Operation};

/// A board.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Board {
    /// The name on the command line.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Cores.
    pub cores: u32,
    /// Its published processor times, if any.
    pub platform: Option<&'static Platform>,
    /// Its page cache, if published.
    pub page_cache: Option<PageCache>,
    /// The source of the figures.
    pub source: &'static str,
}

/// The boards that ship.
pub const BOARDS: [Board; 4] = [
    Board {
        name: PLATFORMS[0].name,
        title: PLATFORMS[0].title,
        cores: PLATFORMS[0].cores,
        platform: Some(&PLATFORMS[0]),
        page_cache: None,
        source: "white paper, Tables 1 and 2: spans by ftrace",
    },
    Board {
        name: PLATFORMS[1].name,
        title: PLATFORMS[1].title,
        cores: PLATFORMS[1].cores,
        platform: Some(&PLATFORMS[1]),
        page_cache: None,
        source: "white paper, Tables 1 and 3: spans by ftrace",
    },
    Board {
        name: "colibri-t30",
        title: "Toradex Colibri T30, 1 GB of memory; its own share of a request is in the card's profile",
        cores: 4,
        platform: None,
        page_cache: Some(PageCache { dirty: Bytes(75_000_000), cached: Bytes(700 << 20), copy_bytes_per_s: 400e6 }),
        // One figure for both runs: 256 MiB in 28.92 s with a sync and in 20.39 s without leave 79 MB; 13.61 s and
        // 10.17 s leave 68.
        source: "board vendor's dd and bonnie++ runs: the difference in written data. Copying: bonnie++ read 395 MB/s from memory",
    },
    Board {
        name: "colibri-imx6s",
        title: "Toradex Colibri iMX6S, 256 MB of memory; its own share of a request is in the card's profile",
        cores: 1,
        platform: None,
        page_cache: Some(PageCache { dirty: Bytes(27_000_000), cached: Bytes(120 << 20), copy_bytes_per_s: 300e6 }),
        source: "Assumed: 15 % (midway between the kernel's 10 and 20) of the 180 MB that 256 MB leave. Memory as published; copying assumed",
    },
];

/// The board with this name.
pub fn board(name: &str) -> Option<&'static Board> {
    BOARDS.iter().find(|board| board.name == name)
}

impl Board {
    /// The cost of reads and writes with direct I/O: from the published direct workloads, else from those that do not
    /// say.
    pub(crate) fn models(&self) -> Option<[HostModel; 2]> {
        let of = |operation| {
            let workloads = self.platform?.workloads.iter().filter(|workload| workload.operation == operation);
            let best = workloads.min_by_key(|workload| match workload.access {
                Access::Direct => 0,
                Access::Unstated => 1,
                Access::Sync => 2,
            })?;
            Some(HostModel::of(best))
        };
        Some([of(Operation::Read)?, of(Operation::Write)?])
    }

    /// A read through the page cache, and a synchronous write, if they were published.
    pub(crate) fn sync_models(&self) -> Option<[HostModel; 2]> {
        let of = |operation| {
            let mut workloads = self.platform?.workloads.iter();
            let found =
                workloads.find(|workload| (workload.operation, workload.access) == (operation, Access::Sync))?;
            Some(HostModel::of(found))
        };
        Some([of(Operation::Read)?, of(Operation::Write)?])
    }

    /// Whether its controller supports command queueing.
    pub fn queues(&self) -> bool {
        self.platform.is_none_or(|platform| platform.engine == crate::CqEngine::Hardware)
    }

    /// The time between two transfers if a core must start each of them; zero if it was not published.
    pub(crate) fn gap(&self) -> Nanos {
        self.platform.map_or(Nanos::ZERO, |platform| platform.gap_completion + platform.gap_issue)
    }
}
