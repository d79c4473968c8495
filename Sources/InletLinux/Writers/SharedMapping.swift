import CLinux
import Glibc
import InletCore
package import SystemPackage

/// A file that a process has mapped for writing, seen by others: a line of `/proc/PID/maps` (proc(5)).
package struct SharedMapping: Sendable, Hashable {
    /// As `st_dev` of the file system; on btrfs and overlayfs `stat` says another number.
    package var device: UInt64
    package var inode: UInt64
    /// As the process sees it; a line feed in it is `\012`.
    package var path: FilePath

    package init(device: UInt64, inode: UInt64, path: FilePath) {
        self.device = device
        self.inode = inode
        self.path = path
    }

    /// Those of `process`. `limit` is what may still be read, in bytes, and is lessened by what was.
    static func read(of process: Int32, limit: inout Int) throws(SystemError) -> [SharedMapping] {
        let path = FilePath("/proc/\(process)/maps")
        let descriptor = try Descriptor(opening: path, O_RDONLY)
        var found: [SharedMapping] = []
        var rest: [UInt8] = []
        while limit > 0 {
            let piece = try piece(of: descriptor.number, path)
            if piece.isEmpty { break }
            limit -= piece.count
            rest += piece
            guard let end = rest.lastIndex(of: UInt8(ascii: "\n")) else { continue }
            found += parse(rest[...end])
            rest.removeSubrange(...end)
        }
        return found
    }

    private static func piece(of number: CInt, _ path: FilePath) throws(SystemError) -> [UInt8] {
        try withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 8) { (buffer) throws(SystemError) in
            let count = try SystemCall.result("read", path) { Glibc.read(number, buffer.baseAddress, buffer.count) }
            return Array(buffer[..<count])
        }
    }

    /// The mappings of files among whole lines of `maps`. Total on any bytes: what is no such line is left out.
    package static func parse(_ lines: some Collection<UInt8>) -> [SharedMapping] {
        lines.split(separator: UInt8(ascii: "\n")).compactMap { parse(line: $0) }
    }

    /// `7fac12c35000-7fac12c36000 rw-s 00000000 fe:00 16239092      /srv/drop/film.mov`
    private static func parse(line: some Collection<UInt8>) -> SharedMapping? {
        let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 5, omittingEmptySubsequences: true)
        guard fields.count == 6 else { return nil }
        let modes = Array(fields[1])
        guard modes.count == 4, modes[1] == UInt8(ascii: "w"), modes[3] == UInt8(ascii: "s") else { return nil }
        let numbers = fields[3].split(separator: UInt8(ascii: ":"))
        guard numbers.count == 2, let major = hexadecimal(numbers[0]), let minor = hexadecimal(numbers[1]),
            let inode = UInt64(String(decoding: fields[4], as: UTF8.self)), inode != 0
        else { return nil }
        let path = fields[5].drop { $0 == UInt8(ascii: " ") }
        guard path.first == UInt8(ascii: "/") else { return nil }
        return SharedMapping(
            device: inlet_device(major, minor), inode: inode, path: FilePath(bytes: Array(path)))
    }

    private static func hexadecimal(_ digits: some Collection<UInt8>) -> UInt32? {
        UInt32(String(decoding: digits, as: UTF8.self), radix: 16)
    }
}
