//! The authenticated device configuration: two bytes that decide who may change write protection.
//!
//! A write request has the byte's address in the address field, and its value in the last byte of the data. The reply
//! to a read request has all bytes, at the end of the data and backwards: address 1 last.
//!
//! Source: JESD84-B51 clause 6.6.22; mmc-utils' secure write protection of 2025, by SanDisk.

use super::DATA_BYTES;

/// A byte of the device configuration; its number is its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum ConfigByte {
    /// SECURE_WP_MODE_ENABLE: bit 0 is SECURE_WP_EN.
    SecureWpModeEnable = 1,
    /// SECURE_WP_MODE_CONFIG: bit 0 is SECURE_WP_MASK.
    SecureWpModeConfig = 2,
}

impl ConfigByte {
    /// The byte at an address.
    pub fn at(address: u16) -> Option<Self> {
        [Self::SecureWpModeEnable, Self::SecureWpModeConfig].into_iter().find(|byte| *byte as u16 == address)
    }

    /// Where a read reply has it in its data.
    const fn offset(self) -> usize {
        DATA_BYTES - self as usize
    }

    /// The data of a write request.
    pub fn data(value: bool) -> [u8; DATA_BYTES] {
        let mut data = [0; DATA_BYTES];
        data[DATA_BYTES - 1] = value.into();
        data
    }
}

/// The state of secure write protection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecureWriteProtection {
    /// SECURE_WP_EN: write protection changes only while `allows_changes`.
    pub is_on: bool,
    /// SECURE_WP_MASK. Without effect while the mode is off.
    pub allows_changes: bool,
}

impl SecureWriteProtection {
    /// From the data of a read reply.
    ///
    /// Shape: [`DATA_BYTES`].
    pub fn from_data(data: &[u8]) -> Self {
        let is_set = |byte: ConfigByte| data.get(byte.offset()).is_some_and(|value| value & 1 == 1);
        Self { is_on: is_set(ConfigByte::SecureWpModeEnable), allows_changes: is_set(ConfigByte::SecureWpModeConfig) }
    }

    /// The data of a read reply.
    pub fn to_data(self) -> [u8; DATA_BYTES] {
        let mut data = [0; DATA_BYTES];
        data[ConfigByte::SecureWpModeEnable.offset()] = self.is_on.into();
        data[ConfigByte::SecureWpModeConfig.offset()] = self.allows_changes.into();
        data
    }
}
