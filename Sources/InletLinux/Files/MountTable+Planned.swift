import InletCore
package import SystemPackage

extension MountTable {
    /// Where this machine's fstab(5) has something mounted, at the start or when it is asked for; none where it cannot be read.
    /// `/` is not among them. Blocks.
    package static func plannedPoints() -> [FilePath] {
        (try? DurableFile.read("/etc/fstab", limit: 1 << 20)).map(plannedPoints) ?? []
    }

    /// Total on any bytes: what is no line of it is left out.
    package static func plannedPoints(in bytes: [UInt8]) -> [FilePath] {
        bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let fields = line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            guard fields.count >= 3, fields[0].first != UInt8(ascii: "#") else { return nil }
            let point = FilePath(bytes: unescape(fields[1]))
            return point.isAbsolute && point != "/" ? point : nil
        }
    }
}
