//! How Linux is made to use a slower clock or an older mode.
//!
//! Source: Linux `Documentation/devicetree/bindings/mmc/mmc-controller.yaml`, `drivers/mmc/core/host.c`
//! (`mmc_of_parse`), `drivers/mmc/host/sdhci.{c,h}` (`debug_quirks2`).

use emmc_port::BusInUse;
use serde::Serialize;

use super::{CleanClock, mhz};

/// Where a line belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PinPlace {
    /// The controller's node of the device tree.
    DeviceTree,
    /// The kernel's command line, for SDHCI controllers that no device tree describes (PCI, ACPI). It is for all of
    /// them.
    KernelParameter,
}

/// A line, and what it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pin {
    /// Where it belongs.
    pub place: PinPlace,
    /// The line.
    pub line: String,
    /// Whether the line is to be removed, and not added.
    pub remove: bool,
    /// What it does.
    pub effect: String,
}

/// The lines for a bus with errors, the mildest first.
pub(super) fn pins(bus: &BusInUse, clean: Option<&CleanClock>) -> Vec<Pin> {
    use PinPlace::{DeviceTree, KernelParameter};
    let mut pins = Vec::new();
    let mut add = |place, remove, line: &str, effect: &str| {
        pins.push(Pin { place, line: line.into(), remove, effect: effect.into() });
    };
    if let Some(clean) = clean {
        let line = format!("max-frequency = <{}>;", clean.clock_hz);
        add(DeviceTree, false, &line, &format!("the same mode, at {} at most", mhz(clean.clock_hz)));
    }
    let mode = bus.mode.to_ascii_lowercase();
    if mode.contains("hs400") {
        add(DeviceTree, false, "no-mmc-hs400;", "HS200 instead of HS400 (Linux 5.14 and later)");
        add(DeviceTree, true, "mmc-hs400-1_8v;", "the same, where the tree has that line");
    } else if mode.contains("hs200") {
        add(DeviceTree, true, "mmc-hs200-1_8v;", "DDR52 or High Speed instead of HS200");
        add(DeviceTree, false, "no-1-8-v;", "no mode with 1.8 V, where the controller itself claims HS200");
    } else if mode.contains("sdr104") || mode.contains("sdr50") || mode.contains("ddr50") {
        let speed = mode.split_whitespace().last().unwrap_or_default();
        add(DeviceTree, true, &format!("sd-uhs-{speed};"), "the next slower mode of UHS-I");
        add(DeviceTree, false, "no-1-8-v;", "High Speed at 3.3 V, no UHS-I at all");
    } else if mode.contains("ddr52") {
        add(DeviceTree, true, "mmc-ddr-1_8v;", "High Speed instead of DDR52; also mmc-ddr-3_3v");
    }
    if mode.contains("hs200") || mode.contains("hs400") {
        add(KernelParameter, false, "sdhci.debug_quirks2=0x40", "no HS200 and no HS400");
    }
    if mode.contains("uhs") {
        add(KernelParameter, false, "sdhci.debug_quirks2=0x4", "no mode with 1.8 V");
    }
    pins
}
