internal import SystemPackage

/// The run of the machine since it was switched on, or restarted.
package enum Boot {
    /// What another run has not: `/proc/sys/kernel/random/boot_id` (random(4)), which containers share with their host; nil
    /// where it cannot be read.
    package static func id() -> String? {
        (try? DurableFile.read("/proc/sys/kernel/random/boot_id", limit: 64)).map {
            String(decoding: $0, as: UTF8.self).filter { !$0.isWhitespace }
        }
    }

    /// The first half of `id` as a number.
    package static func number() -> Int64? {
        id().flatMap { UInt64($0.filter(\.isHexDigit).prefix(16), radix: 16) }.map(Int64.init(bitPattern:))
    }
}
