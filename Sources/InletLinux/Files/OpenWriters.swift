import CLinux
import Glibc
package import InletCore
package import SystemPackage

/// The files that this machine's processes have open for writing, as far as `/proc` shows them to this user (proc(5)).
///
/// It answers two questions that a lease cannot: who the writer is, and whether there is one where a lease is not
/// allowed. It sees less than a lease: no process of another user without CAP_SYS_PTRACE, none outside this PID
/// namespace, no server in the kernel, nothing on other machines. A file not found here may still have a writer.
package struct OpenWriters: Sendable {
    /// A process that may write to a file.
    package struct WriterProcess: Sendable, Hashable {
        package var process: Int32
        /// Its `comm`: the first 15 bytes of its program's name, which it can change.
        package var name: String
        /// It has closed the file, but still maps it for writing.
        package var isMapping = false

        /// `ffmpeg (process 4711)`, escaped for terminals and logs.
        package var text: String { "\(DisplayText.escape(name)) (process \(process))" }
    }

    /// By device and inode.
    private var descriptors: [UInt64: [UInt64: Int32]] = [:]
    private var mappings: [UInt64: [(mapping: SharedMapping, process: Int32)]] = [:]
    /// Processes whose files this user may not see.
    package private(set) var hidden = 0
    /// There was more than the limits allow.
    package private(set) var isCut = false
    /// The remaining budget.
    private var descriptorsLeft: Int
    private var mappingBytesLeft: Int

    /// Looks at every process that may be looked at. Blocks, for some ten microseconds a descriptor; asks no file
    /// server.
    ///
    /// - Parameters:
    ///   - mostDescriptors: the most to look at, so that a machine with a hundred thousand sockets costs no more than
    /// others.
    ///   - mostMappingBytes: the most to read of processes' mappings, likewise.
    package init(mostDescriptors: Int = 65_536, mostMappingBytes: Int = 16 << 20) {
        (descriptorsLeft, mappingBytesLeft) = (mostDescriptors, mostMappingBytes)
        do throws(SystemError) {
            var processes = try DirectoryStream("/proc")
            while let entry = try processes.next() {
                guard let process = Int32(entry.name.string) else { continue }
                isCut = descriptorsLeft <= 0 || mappingBytesLeft <= 0
                if isCut { return }
                look(into: process)
            }
        } catch {
            // A process that cannot be seen may still be writing.
            isCut = true
        }
    }

    /// The processes that may write to the file of that identity; `path` distinguishes mappings where the kernel gives
    /// them another device number (btrfs, overlayfs). Blocks for one read of `/proc`.
    package func holder(of identity: FileIdentity, at path: FilePath) -> WriterProcess? {
        if let process = descriptors[identity.device]?[identity.inode] {
            return WriterProcess(process: process, name: Self.name(of: process))
        }
        let found = mappings[identity.inode]?.first { $0.mapping.device == identity.device || $0.mapping.path == path }
        return found.map { WriterProcess(process: $0.process, name: Self.name(of: $0.process), isMapping: true) }
    }

    private mutating func look(into process: Int32) {
        let folder = FilePath("/proc/\(process)")
        do throws(SystemError) {
            var stream = try DirectoryStream(folder.appending("fd"))
            while let entry = try stream.next(), descriptorsLeft > 0 {
                descriptorsLeft -= 1
                if let (device, inode) = Self.writable("\(folder.string)/fd/\(entry.name.string)") {
                    descriptors[device, default: [:]][inode] = process
                }
            }
            for mapping in try SharedMapping.read(of: process, limit: &mappingBytesLeft) {
                mappings[mapping.inode, default: []].append((mapping, process))
            }
        } catch {
            // It has ended, or is a kernel thread.
            if error.isPermission { hidden += 1 }
        }
    }

    /// The regular file behind a link of `/proc/PID/fd`, if it is open for writing, by the link's own permission bits.
    private static func writable(_ link: String) -> (device: UInt64, inode: UInt64)? {
        var status = stat()
        guard lstat(link, &status) == 0, status.st_mode & S_IWUSR != 0 else { return nil }
        var (device, inode): (UInt64, UInt64) = (0, 0)
        return inlet_cached_status(link, &device, &inode) == 1 ? (device, inode) : nil
    }

    static func name(of process: Int32) -> String {
        // Only a name for people: that it holds the file is known by then.
        guard let bytes = DurableFile.readIfPossible(FilePath("/proc/\(process)/comm"), limit: 256) else {
            return "a process that has ended"
        }
        return String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }
}

/// A file that a process has mapped for writing, visible to others: a line of `/proc/PID/maps` (proc(5)).
package struct SharedMapping: Sendable, Hashable {
    /// The file system's `st_dev`; on btrfs and overlayfs `stat` returns another number.
    package var device: UInt64
    package var inode: UInt64
    /// The process's own view of the path; a line feed in it is `\012`.
    package var path: FilePath

    /// The mappings of `process`. `limit` is the number of bytes that may still be read; it is reduced by those read.
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

    /// The mappings of files among complete lines of `maps`. Accepts any bytes: other lines are skipped.
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
