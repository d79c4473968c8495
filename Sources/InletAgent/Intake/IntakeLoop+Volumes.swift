internal import InletCore
internal import InletJournal
internal import InletLinux
package import SystemPackage

/// Which folder a path leads to, as far as numbers tell.
struct FolderPlace: Equatable {
    private let device: UInt64
    private let inode: UInt64

    /// Zeros for what is not there.
    init(_ path: FilePath) {
        if case .directory(let identity)? = try? FileLook.look(at: path) {
            (device, inode) = (identity.device, identity.inode)
        } else {
            (device, inode) = (0, 0)
        }
    }
}

/// Whether a removable volume can be taken out.
extension IntakeLoop {
    /// Says it once everything on the volume has been seen and has ended: proved by all its destinations, or not.
    mutating func tellVolume() async {
        guard let volume = admission.volume, let key = volume.key, canCloseUnits, settler.count == 0, units.isEmpty,
            let found = try? await admission.journal.standing(of: key)
        else { return }
        var standing = found
        // What was taken off the volume meanwhile is no reason to keep it in.
        standing.unproved = found.unproved.filter { admission.look($0)?.identity != nil }
        guard standing != saidOfVolume, (try? isDrained) == true else { return }
        saidOfVolume = standing
        log.emit(
            .volumeDone(
                VolumeEnd(root: settings.path, volume: volume.name, standing, ignored: admission.ignored)))
    }
}

/// What became of the files of a removable volume.
package struct VolumeEnd: Sendable, Equatable {
    package var root: FilePath
    /// Its label, or UUID.
    package var volume: String
    /// Files that all their destinations have proved, and their sizes together.
    package var files: Int
    package var bytes: Int64
    /// Files that are on it and ended otherwise.
    package var unproved: Int
    /// Files that no route takes, and what is never read.
    package var ignored: Int

    init(root: FilePath, volume: String, _ standing: VolumeStanding, ignored: Int) {
        self.root = root
        self.volume = volume
        files = (standing.files[.delivered] ?? 0) + (standing.files[.duplicate] ?? 0)
        bytes = standing.bytes
        unproved = standing.unproved.count
        self.ignored = ignored
    }

    package var isSafe: Bool { unproved == 0 }
}
