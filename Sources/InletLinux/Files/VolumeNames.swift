import CLinux
import Glibc
import SystemPackage

/// What a mounted file system says of itself, where the kernel can be asked: also in containers, which have no `/dev/disk`.
struct VolumeNames {
    /// As `/dev/disk/by-uuid` writes it.
    var uuid: String?
    var label: String?

    /// Asks by any folder of the file system. What it does not know is nil; nothing is read of the disk.
    init(of folder: FilePath) throws(SystemError) {
        let descriptor: Descriptor
        do throws(SystemError) {
            descriptor = try Descriptor(opening: folder, O_RDONLY | O_DIRECTORY | O_NONBLOCK)
        } catch {
            if error.isPermission { return }
            throw error
        }
        var number: UInt32 = 0
        if inlet_fat_volume(descriptor.number, &number) == 0 {
            uuid = Self.short(number)
        } else {
            var answer = [UInt8](repeating: 0, count: 17)
            if inlet_file_system_uuid(descriptor.number, &answer) == 0 {
                uuid = Self.uuid(answer.dropFirst().prefix(Int(answer[0])))
            }
        }
        var label = [CChar](repeating: 0, count: 257)
        if inlet_file_system_label(descriptor.number, &label) == 0 {
            let bytes = label.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            self.label = bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
        }
    }

    /// Sixteen bytes as RFC 9562 writes them, the four of FAT and exFAT as their tools do; nil for others, and for none.
    static func uuid(_ bytes: some Collection<UInt8>) -> String? {
        guard bytes.contains(where: { $0 != 0 }) else { return nil }
        let bytes = Array(bytes)
        if bytes.count == 4 { return short(bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }) }
        guard bytes.count == 16 else { return nil }
        let digits = bytes.map(Self.hexadecimal)
        return [0..<4, 4..<6, 6..<8, 8..<10, 10..<16].map { digits[$0].joined() }.joined(separator: "-")
    }

    private static func short(_ number: UInt32) -> String? {
        guard number != 0 else { return nil }
        let digits = [24, 16, 8, 0].map { hexadecimal(UInt8(truncatingIfNeeded: number >> $0)).uppercased() }
        return digits[0] + digits[1] + "-" + digits[2] + digits[3]
    }

    private static func hexadecimal(_ byte: UInt8) -> String {
        (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
}
