import CLinux
import Glibc
package import InletCore
package import SystemPackage

/// Which files the processes of this machine have open for writing, as far as `/proc` shows them to this user (proc(5)).
///
/// It answers what a lease cannot: who the writer is, and, where a lease may not be asked for, whether there is one. It sees
/// less than a lease: no process of another user without CAP_SYS_PTRACE, none outside this PID namespace, no server in the
/// kernel, nothing on other machines. A file that is not found here may have a writer all the same.
package struct OpenWriters: Sendable {
    /// A process that may write to a file.
    package struct Holder: Sendable, Hashable {
        package var process: Int32
        /// Its `comm`: the first 15 bytes of its program's name, which it can change itself.
        package var name: String
        /// It has closed the file, but mapped it for writing.
        package var isMapping: Bool

        package init(process: Int32, name: String, isMapping: Bool = false) {
            self.process = process
            self.name = name
            self.isMapping = isMapping
        }

        /// `ffmpeg (process 4711)`, escaped for terminals and logs.
        package var text: String { "\(DisplayText.escape(name)) (process \(process))" }
    }

    /// How much is looked at, so that a machine with a hundred thousand sockets costs no more than others.
    package struct Limits: Sendable {
        package var descriptors = 65_536
        package var mappingBytes = 16 << 20

        package init() {}
    }

    private struct Key: Hashable {
        var device: UInt64
        var inode: UInt64
    }

    private var descriptors: [Key: Int32] = [:]
    private var mappings: [UInt64: [(mapping: SharedMapping, process: Int32)]] = [:]
    /// Processes that this user may not look into.
    package private(set) var hidden = 0
    /// There was more than the limits allow.
    package private(set) var isCut = false
    private var limits: Limits

    /// Looks at every process that may be looked at. Blocks, for some ten microseconds a descriptor; no file server is asked.
    package init(_ limits: Limits = Limits()) {
        self.limits = limits
        do throws(SystemError) {
            var processes = try DirectoryStream("/proc")
            while let entry = try processes.next() {
                guard let process = Int32(entry.name.string) else { continue }
                isCut = isOver
                if isCut { return }
                look(into: process)
            }
        } catch {
            // Who is not seen is not known not to write.
            isCut = true
        }
    }

    /// Who may write to the file of that identity; `path` tells mappings apart where the kernel gives them another device
    /// number (btrfs, overlayfs). Blocks for one read of `/proc`.
    package func holder(of identity: FileIdentity, at path: FilePath) -> Holder? {
        if let process = descriptors[Key(device: identity.device, inode: identity.inode)] {
            return Holder(process: process, name: Self.name(of: process))
        }
        let found = mappings[identity.inode]?.first { $0.mapping.device == identity.device || $0.mapping.path == path }
        return found.map { Holder(process: $0.process, name: Self.name(of: $0.process), isMapping: true) }
    }

    private var isOver: Bool { limits.descriptors <= 0 || limits.mappingBytes <= 0 }

    private mutating func look(into process: Int32) {
        let folder = FilePath("/proc/\(process)")
        do throws(SystemError) {
            var stream = try DirectoryStream(folder.appending("fd"))
            while let entry = try stream.next(), limits.descriptors > 0 {
                limits.descriptors -= 1
                if let key = Self.writable("\(folder.string)/fd/\(entry.name.string)") { descriptors[key] = process }
            }
            for mapping in try SharedMapping.read(of: process, limit: &limits.mappingBytes) {
                mappings[mapping.inode, default: []].append((mapping, process))
            }
        } catch {
            // It has ended meanwhile, or is a kernel thread.
            if error.isPermission { hidden += 1 }
        }
    }

    /// The regular file behind a link of `/proc/PID/fd`, if it is open for writing: the link's own permission bits say how.
    private static func writable(_ link: String) -> Key? {
        var status = stat()
        guard lstat(link, &status) == 0, status.st_mode & S_IWUSR != 0 else { return nil }
        var key = Key(device: 0, inode: 0)
        return inlet_cached_status(link, &key.device, &key.inode) == 1 ? key : nil
    }

    private static func name(of process: Int32) -> String {
        // Only a word for people: that it holds the file is known by then.
        guard let bytes = try? DurableFile.read(FilePath("/proc/\(process)/comm"), limit: 256) else {
            return "a process that has ended"
        }
        return String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }
}
