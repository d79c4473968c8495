import CLinux
import Glibc
package import InletCore
package import SystemPackage

/// Whether any process on this machine may still write to a file. The kernel is asked for a lease; where it cannot
/// answer, the processes are examined.
package enum WriterProbe {
    /// `.busy` also when a process has the file open where leases are not available. Finding none proves nothing: the
    /// answer stays the lease's. Follows no symlink below the root. Blocks.
    package static func probe(_ file: RootedPath) -> LeaseProbe {
        judged(LeaseProbe.look { () throws(SystemError) in try SourceFile(opening: file) }, file).writer
    }

    /// The same in an open folder, with the file's identity after the probe; nil where it cannot be opened. Blocks.
    package static func look(
        at name: FilePath.Component, in folder: Folder
    ) -> (writer: LeaseProbe, file: FileLook?) {
        judged(
            LeaseProbe.look { () throws(SystemError) in try SourceFile(opening: name, in: folder) },
            RootedPath(folder.path, FilePath(root: nil, [name])))
    }

    /// The same for the path's last name, which begins at `start`. Of thousands in a row each is opened once, and not
    /// looked at before: a moment ago it was a regular file. Blocks.
    static func look(endOf file: FilePath, from start: Int, in folder: Folder) -> (writer: LeaseProbe, file: FileLook?)
    {
        judged(
            LeaseProbe.look(endOf: file, from: start, in: folder),
            RootedPath(folder.path, FilePath(root: nil, file.lastComponent.map { [$0] } ?? [])))
    }

    /// - Parameter file: for the few that the lease says nothing about.
    private static func judged(
        _ look: (probe: LeaseProbe, file: FileLook?, isOverlay: Bool), _ file: @autoclosure () -> RootedPath
    ) -> (writer: LeaseProbe, file: FileLook?) {
        let (answer, found, isOverlay) = look
        guard isAskedOfProcesses(answer, isOverlay) else { return (answer, found) }
        let file = file()
        // If even the scan fails, the lease's answer stays, and the next reader of the file meets the error.
        guard let known = (found ?? (try? FileLook.look(at: file)))?.identity else { return (answer, found) }
        guard let holders = holders(of: [ProbedFile(known, file.whole)], isFresh: false) else {
            return (.unknown("the helper process does not say who has it open"), found)
        }
        return (holders.allSatisfy { $0 == nil } ? answer : .busy, found)
    }

    /// An overlay grants a lease on a file that is still mapped for writing once its descriptor is closed: the mapping
    /// belongs to the layer below.
    private static func isAskedOfProcesses(_ answer: LeaseProbe, _ isOverlay: Bool) -> Bool {
        switch answer {
        case .busy: false
        case .free: isOverlay
        case .unknown: true
        }
    }

    /// The processes that may write to a file. The last scan is reused for up to a second, but not for a file created
    /// or changed since: its writer may have come with it. A process that opens an old file after the scan changes the
    /// file, as one does that opens it after a probe. That is noticed before anything is done with the file. Blocks.
    package static func holder(of identity: FileIdentity, at path: FilePath) -> OpenWriters.WriterProcess? {
        holders(of: [ProbedFile(identity, path)], isFresh: false)?.first ?? nil
    }

    /// The same for several files, after one scan for all. Blocks.
    package static func holders(of files: [(identity: FileIdentity, path: FilePath)]) -> [OpenWriters.WriterProcess?] {
        holders(of: files.map { ProbedFile($0.identity, $0.path) }, isFresh: true) ?? files.map { _ in nil }
    }

    /// nil where the helper has ended or does not answer.
    private static func holders(of files: [ProbedFile], isFresh: Bool) -> [OpenWriters.WriterProcess?]? {
        // Where none was started nobody is known.
        guard let host = try? ProcessHost.shared() else { return files.map { _ in nil } }
        return host.holders(of: files, isFresh: isFresh)
    }
}

/// The kernel's answer about writers of a file: a read lease (`F_SETLEASE`, fcntl(2)) is granted only while nobody has
/// the file open for writing.
///
/// A writer that opens while the lease is held raises `SIGIO`, whose default ends the process: see
/// `ProcessSetup.ignoreSignals`. The lease is given back at once and on the same thread.
package enum LeaseProbe: Sendable, Hashable {
    /// Nobody has it open or mapped for writing.
    case free
    /// Somebody has.
    case busy
    /// The kernel cannot tell here; the text gives the reason.
    case unknown(String)

    /// Probes a file. A file that cannot be opened is `.unknown` with the error's text; one that another process's
    /// lease would block (Samba's oplock) is `.busy`. Blocks.
    ///
    /// - Returns: also the file's identity after the probe, nil where it cannot be opened, and whether it is on an
    ///   overlay. A file generated as it is read is not a regular file, whatever it claims.
    static func look(
        _ open: () throws(SystemError) -> SourceFile
    ) -> (probe: LeaseProbe, file: FileLook?, isOverlay: Bool) {
        do throws(SystemError) {
            let source = try open()
            defer { withExtendedLifetime(source) {} }
            let kind = FileSystemKind(of: source.descriptor.number)
            let probe = probe(source.descriptor.number, on: kind)
            // An unreadable file fails in the same way when it is sent, and is still a regular file.
            let isMadeUp = (try? source.exceedsItsSize()) == true
            return (probe, isMadeUp ? .other : try source.look(), kind?.name == "overlay")
        } catch  where error.code == .resourceTemporarilyUnavailable {
            return (.busy, nil, false)
        } catch {
            return (.unknown(error.description), nil, false)
        }
    }

    /// The same for the path's last name, which begins at `start`.
    static func look(
        endOf file: FilePath, from start: Int, in folder: Folder
    ) -> (probe: LeaseProbe, file: FileLook?, isOverlay: Bool) {
        do throws(SystemError) {
            let descriptor = try folder.open(endOf: file, from: start, O_NONBLOCK | O_NOCTTY)
            let kind = FileSystemKind(of: descriptor.number)
            let probe = probe(descriptor.number, on: kind)
            var status = try descriptor.status(folder.shown(endOf: file))
            // Another kind of file has its name now: the caller looks again.
            guard status.isRegular else { return (.unknown("not a regular file"), nil, false) }
            let isLonger = hasByte(descriptor, at: status.st_size)
            let size = status.st_size
            if isLonger { status = try descriptor.status(folder.shown(endOf: file)) }
            // Nobody appended to it: a program makes it up as it is read.
            let isMadeUp = isLonger && status.st_size == size
            return (probe, isMadeUp ? .other : FileLook(status), kind?.name == "overlay")
        } catch  where error.code == .resourceTemporarilyUnavailable {
            return (.busy, nil, false)
        } catch {
            return (.unknown(error.description), nil, false)
        }
    }

    /// False also for an unreadable file, which fails in the same way when it is sent.
    private static func hasByte(_ descriptor: borrowing Descriptor, at offset: off_t) -> Bool {
        var byte: UInt8 = 0
        return pread(descriptor.number, &byte, 1, offset) > 0
    }

    /// Through a read-only descriptor: the kernel would count a writable one as a writer.
    private static func probe(_ descriptor: CInt, on kind: FileSystemKind?) -> LeaseProbe {
        // NFS and CIFS also answer EAGAIN for want of a delegation or oplock: a file there would stay busy for ever.
        if let kind, kind.isNetwork, !kind.isFUSE {
            return .unknown("writers on other hosts are not seen on \(kind.name)")
        }
        guard inlet_set_lease(descriptor, F_RDLCK) == 0 else { return refused(errno) }
        _ = inlet_set_lease(descriptor, F_UNLCK)
        if let kind, kind.isFUSE { return .unknown("only writers that go through this FUSE mount are seen") }
        return .free
    }

    private static func refused(_ code: CInt) -> LeaseProbe {
        switch code {
        case EAGAIN: .busy
        case EACCES: .unknown("not the owner of the file, and no CAP_LEASE")
        case EINVAL, EOPNOTSUPP, ENOSYS: .unknown("the file system has no leases")
        default: .unknown("lease refused: \(Errno(rawValue: code))")
        }
    }
}
