//! MQSim's two XML files.

use std::path::Path;

use anyhow::{Context, ensure};
use emmc_card::device::{Area, Device};
use emmc_card::profile::{GcPolicy, Layout, Mapping, RegionRole, TRIM_LOG_BLOCKS};
use emmc_workload::Job;

/// Shares of free blocks at which MQSim collects in the background and at which it blocks the host: with fewer it stops
/// or aborts with "Inconsistency found when moving a page".
const FREE_SHARE_SOFT: f64 = 0.02;
const FREE_SHARE_HARD: f64 = 0.005;

/// An element with text content.
fn element(name: &str, value: impl std::fmt::Display) -> String {
    format!("<{name}>{value}</{name}>\n")
}

/// The device: the main region of the card, without its spares, with pages of the size of a mapping unit.
pub(crate) fn device(device: &Device, job: &Job) -> anyhow::Result<String> {
    let (profile, geometry) = (device.profile(), device.nand().geometry());
    ensure!(profile.ftl.mapping == Mapping::Page, "MQSim maps pages; {} maps segments", profile.name);
    let layout = Layout::factory(profile, 1)?;
    let main = layout.region(RegionRole::Main).context("the card has no main region")?;
    let blocks = main.blocks.len() as u32 - main.spares - TRIM_LOG_BLOCKS - main.slc_blocks;
    let units = f64::from(blocks) * f64::from(geometry.units_per_block());
    let spare_share = 1.0 - device.sectors(Area::User) as f64 * 512.0 / f64::from(geometry.unit_bytes) / units;
    let low = (f64::from(profile.ftl.gc_low_blocks) / f64::from(blocks)).max(FREE_SHARE_SOFT);
    let wear = profile.ftl.wear;
    let elements = [
        ("Seed", job.seed.to_string()),
        ("Enabled_Preconditioning", "false".into()),
        ("Memory_Type", "FLASH".into()),
        ("HostInterface_Type", "NVME".into()),
        ("IO_Queue_Depth", "1024".into()),
        ("Queue_Fetch_Size", "512".into()),
        ("Caching_Mechanism", "SIMPLE".into()),
        ("Data_Cache_Sharing_Mode", "SHARED".into()),
        ("Data_Cache_Capacity", profile.controller.cache_bytes.max(1 << 20).to_string()),
        ("Data_Cache_DRAM_Row_Size", "8192".into()),
        ("Data_Cache_DRAM_Data_Rate", "800".into()),
        ("Data_Cache_DRAM_Data_Busrt_Size", "4".into()),
        ("Data_Cache_DRAM_tRCD", "13".into()),
        ("Data_Cache_DRAM_tCL", "13".into()),
        ("Data_Cache_DRAM_tRP", "13".into()),
        ("Address_Mapping", "PAGE_LEVEL".into()),
        ("Ideal_Mapping_Table", profile.ftl.mapping_cache.is_none().to_string()),
        ("CMT_Capacity", "2097152".into()),
        ("CMT_Sharing_Mode", "SHARED".into()),
        ("Plane_Allocation_Scheme", "CWDP".into()),
        ("Transaction_Scheduling_Policy", "PRIORITY_OUT_OF_ORDER".into()),
        ("Overprovisioning_Ratio", format!("{spare_share:.6}")),
        ("GC_Exec_Threshold", format!("{low:.6}")),
        ("GC_Block_Selection_Policy", policy(profile.ftl.gc).into()),
        ("Use_Copyback_for_GC", "false".into()),
        ("Preemptible_GC_Enabled", "false".into()),
        ("GC_Hard_Threshold", FREE_SHARE_HARD.to_string()),
        ("Dynamic_Wearleveling_Enabled", wear.dynamic.to_string()),
        ("Static_Wearleveling_Enabled", (wear.static_gap > 0).to_string()),
        ("Static_Wearleveling_Threshold", wear.static_gap.max(1).to_string()),
        ("Preferred_suspend_erase_time_for_read", "700000".into()),
        ("Preferred_suspend_erase_time_for_write", "700000".into()),
        ("Preferred_suspend_write_time_for_read", "100000".into()),
        ("Flash_Channel_Count", geometry.channels.to_string()),
        ("Flash_Channel_Width", "1".into()),
        ("Channel_Transfer_Rate", (profile.nand.channel_mb_s as u64).to_string()),
        ("Chip_No_Per_Channel", (geometry.dies / geometry.channels).to_string()),
        ("Flash_Comm_Protocol", "NVDDR2".into()),
    ];
    let elements: String = elements.iter().map(|(name, value)| element(name, value)).collect();
    let host = "<Host_Parameter_Set>\n<PCIe_Lane_Bandwidth>1.0</PCIe_Lane_Bandwidth>\n<PCIe_Lane_Count>4</PCIe_Lane_Count>\n\
                <SATA_Processing_Delay>400000</SATA_Processing_Delay>\n\
                <Enable_ResponseTime_Logging>false</Enable_ResponseTime_Logging>\n\
                <ResponseTime_Logging_Period_Length>1000000</ResponseTime_Logging_Period_Length>\n</Host_Parameter_Set>\n";
    let flash = flash(device, blocks);
    Ok(format!(
        "<Execution_Parameter_Set>\n{host}<Device_Parameter_Set>\n{elements}{flash}</Device_Parameter_Set>\n\
         </Execution_Parameter_Set>\n"
    ))
}

fn policy(policy: GcPolicy) -> &'static str {
    match policy {
        GcPolicy::Fifo => "FIFO",
        GcPolicy::DChoices(1) => "RANDOM",
        GcPolicy::DChoices(_) => "RGA",
        GcPolicy::Greedy | GcPolicy::Windowed(_) | GcPolicy::CostBenefit => "GREEDY",
    }
}

/// The flash, with pages of the size of a mapping unit and proportional times.
fn flash(device: &Device, blocks: u32) -> String {
    let (profile, geometry) = (device.profile(), device.nand().geometry());
    let native = &profile.nand.native;
    let nanos = |micros: f64| format!("{:.0}", micros * 1e3);
    // One of our pages is several of MQSim's, in sequence.
    let program = |page: usize| {
        let micros = native.program_us[page % native.program_us.len()];
        nanos(micros / f64::from(geometry.units_per_page))
    };
    let technology = match native.program_us.len() {
        1 => "SLC",
        2 => "MLC",
        _ => "TLC",
    };
    let elements = [
        ("Flash_Technology", technology.into()),
        ("CMD_Suspension_Support", "NONE".into()),
        ("Page_Read_Latency_LSB", nanos(native.read_us)),
        ("Page_Read_Latency_CSB", nanos(native.read_us)),
        ("Page_Read_Latency_MSB", nanos(native.read_us)),
        ("Page_Program_Latency_LSB", program(0)),
        ("Page_Program_Latency_CSB", program(if native.program_us.len() == 2 { 0 } else { 1 })),
        ("Page_Program_Latency_MSB", program(native.program_us.len() - 1)),
        ("Block_Erase_Latency", nanos(native.erase_ms * 1e3)),
        ("Block_PE_Cycles_Limit", native.endurance.to_string()),
        ("Suspend_Erase_Time", "700000".into()),
        ("Suspend_Program_Time", "100000".into()),
        ("Die_No_Per_Chip", "1".into()),
        ("Plane_No_Per_Die", geometry.planes.to_string()),
        ("Block_No_Per_Plane", blocks.to_string()),
        ("Page_No_Per_Block", (geometry.units_per_block() / geometry.lanes()).to_string()),
        ("Page_Capacity", geometry.unit_bytes.to_string()),
        ("Page_Metadat_Capacity", "64".into()),
    ];
    let elements: String = elements.iter().map(|(name, value): &(&str, String)| element(name, value)).collect();
    format!("<Flash_Parameter_Set>\n{elements}</Flash_Parameter_Set>\n")
}

/// One flow, read from the trace, over the whole device.
///
/// Without a write cache: with one, requests of a trace pile up in MQSim's memory and never complete.
pub(crate) fn workload(device: &Device, trace: &Path) -> String {
    let geometry = device.nand().geometry();
    let list = |count: u32| (0..count).map(|id| id.to_string()).collect::<Vec<_>>().join(",");
    let elements = [
        ("Priority_Class", "HIGH".to_string()),
        ("Device_Level_Data_Caching_Mode", "TURNED_OFF".into()),
        ("Channel_IDs", list(geometry.channels)),
        ("Chip_IDs", list(geometry.dies / geometry.channels)),
        ("Die_IDs", "0".into()),
        ("Plane_IDs", list(geometry.planes)),
        ("Initial_Occupancy_Percentage", "0".into()),
        ("File_Path", trace.file_name().unwrap_or_default().to_string_lossy().into_owned()),
        ("Percentage_To_Be_Executed", "100".into()),
        ("Relay_Count", "1".into()),
        ("Time_Unit", "NANOSECOND".into()),
    ];
    let elements: String = elements.iter().map(|(name, value)| element(name, value)).collect();
    format!(
        "<MQSim_IO_Scenarios>\n<IO_Scenario>\n<IO_Flow_Parameter_Set_Trace_Based>\n{elements}\
         </IO_Flow_Parameter_Set_Trace_Based>\n</IO_Scenario>\n</MQSim_IO_Scenarios>\n"
    )
}
