import CLinux
import Glibc
import InletCore
package import SystemPackage

/// What the kernel says about writers of a file.
package enum LeaseProbe: Sendable, Hashable {
    /// Nobody has it open or mapped for writing.
    case free
    /// Somebody has.
    case busy
    /// The kernel cannot tell here; the text says why.
    case unknown(String)
}

/// The writer check: a read lease (`F_SETLEASE`, fcntl(2)) is granted only while nobody has the file open for writing.
///
/// A writer that opens while the lease is held raises `SIGIO`, whose default ends the process: see
/// `ProcessSetup.ignoreSignals`. The lease is given back at once and on the same thread.
package enum Lease {
    /// Probes the file at `path`. A file that cannot be opened is `.unknown` with the error's text; one whose opening a
    /// lease of another process would block (Samba's oplock) is `.busy`. Blocks.
    package static func probe(path: FilePath) -> LeaseProbe {
        look { () throws(SystemError) in try SourceFile(opening: path) }.probe
    }

    /// The same with what the file is after the probe, nil where it cannot be opened, and whether it is on an overlay. One that
    /// is made up as it is read is no regular file, whatever it says. Blocks.
    static func look(
        _ open: () throws(SystemError) -> SourceFile
    ) -> (probe: LeaseProbe, file: FileLook?, isOverlay: Bool) {
        do throws(SystemError) {
            let source = try open()
            defer { withExtendedLifetime(source) {} }
            let kind = FileSystemKind(of: source.descriptor.number)
            let probe = probe(source.descriptor.number, on: kind)
            // One that cannot be read now fails in the same way when it is sent, and is no regular file any less.
            let isMadeUp = (try? source.exceedsItsSize()) == true
            return (probe, isMadeUp ? .other : try source.look(), kind?.name == "overlay")
        } catch  where error.code == .resourceTemporarilyUnavailable {
            return (.busy, nil, false)
        } catch {
            return (.unknown(error.description), nil, false)
        }
    }

    /// Probes through a descriptor that is open for reading only (the kernel would count a writing one as a writer).
    static func probe(_ descriptor: CInt) -> LeaseProbe { probe(descriptor, on: FileSystemKind(of: descriptor)) }

    private static func probe(_ descriptor: CInt, on kind: FileSystemKind?) -> LeaseProbe {
        // NFS and CIFS answer EAGAIN for want of a delegation or oplock too: a file there would stay busy for ever.
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
