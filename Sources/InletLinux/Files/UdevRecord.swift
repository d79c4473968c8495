import Glibc
import SystemPackage

/// What udev found out about a block device, from its own record of it: unlike `/dev/disk` that needs no device node, so it
/// is also there for a service with a `/dev` of its own, and in a container that is given `/run/udev`.
struct UdevRecord {
    /// As `/dev/disk/by-uuid` writes it.
    var uuid: String?
    var label: String?

    /// - Parameter text: a file of `/run/udev/data`; its properties are the lines `E:NAME=value`.
    init(parsing text: some Collection<UInt8>) {
        for line in text.split(separator: UInt8(ascii: "\n")) {
            let line = String(decoding: line, as: UTF8.self)
            uuid = Self.value(of: "E:ID_FS_UUID_ENC=", in: line) ?? uuid
            label = Self.value(of: "E:ID_FS_LABEL_ENC=", in: line) ?? label
        }
    }

    /// The record of a block device; nil without one.
    init?(of device: UInt64, in folder: FilePath) throws(SystemError) {
        let major = (device >> 8 & 0xFFF) | (device >> 32 & ~0xFFF)
        let minor = (device & 0xFF) | (device >> 12 & 0xFFFF_FF00)
        let text = try VolumeFinder.ifKnown { () throws(SystemError) in
            try DurableFile.read(folder.appending("b\(major):\(minor)"), limit: 1 << 20)
        }
        guard let text else { return nil }
        self.init(parsing: text)
    }

    private static func value(of name: String, in line: String) -> String? {
        guard line.hasPrefix(name), line.count > name.count else { return nil }
        return VolumeFinder.unescaped(String(line.dropFirst(name.count)))
    }
}
