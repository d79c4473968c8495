internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Which folder a path leads to, as far as numbers tell.
struct FolderPlace: Equatable {
    let device: UInt64
    private let inode: UInt64

    /// Zeros for what is not there.
    init(_ path: FilePath) {
        if case .directory(let identity)? = try? FileLook.look(at: path) {
            self.init(identity)
        } else {
            self.init(0, 0)
        }
    }

    init(_ identity: FileIdentity) { self.init(identity.device, identity.inode) }

    private init(_ device: UInt64, _ inode: UInt64) { (self.device, self.inode) = (device, inode) }
}

/// What a folder of a pattern was on when it was taken up. Something may be mounted there, or unmounted, at any time.
struct VolumePlace: Sendable {
    let place: FolderPlace
    let identity: VolumeIdentity
    /// Below the top of the file system.
    let folder: String
    /// Whether that is another file system than the one that the pattern begins on.
    let isVolume: Bool
    /// What its files are known by.
    var volume: Volume

    init(place: FolderPlace, identity: VolumeIdentity, folder: String, isVolume: Bool) {
        self.place = place
        self.identity = identity
        self.folder = folder
        self.isVolume = isVolume
        volume = isVolume ? Volume(identity, folder: folder) : Volume(name: identity.name)
    }

    /// Blocks.
    ///
    /// - Throws: `SystemError`, one with `isMissing` also for what has changed meanwhile.
    init(of root: FilePath, _ pattern: RootPattern) throws {
        guard case .directory(let own) = try FileLook.look(at: root),
            case .directory(let parent) = try FileLook.look(at: pattern.parent)
        else { throw Self.missing(root) }
        let (identity, folder) = try VolumeFinder().place(of: root)
        self.init(
            place: FolderPlace(own), identity: identity, folder: folder, isVolume: parent.device != own.device)
        // Else these would be the number of one folder and the volume of another.
        guard FolderPlace(root) == place else { throw Self.missing(root) }
    }

    private static func missing(_ root: FilePath) -> SystemError {
        SystemError(call: "stat", path: root, code: .noSuchFileOrDirectory)
    }

    /// How it stands to folders that are watched.
    enum Claim: Equatable {
        case free
        /// The same file system is mounted at `other` too, whose runner has its files.
        case twice(other: FilePath)
        /// Another one at `other` has the same label, or the same UUID: the copy of a card, or cards of one camera.
        case alike(other: FilePath)
    }

    func claim(among others: [FilePath: VolumePlace]) -> Claim {
        guard isVolume else { return .free }
        let alike = others.filter { $1.isVolume && $1.identity.key == identity.key && $1.folder == folder }
            .sorted { $0.key.string < $1.key.string }
        if let same = alike.first(where: { $0.value.place.device == place.device }) { return .twice(other: same.key) }
        return alike.first.map { .alike(other: $0.key) } ?? .free
    }

    /// Has its files known by the number of its device too: those of another one must not be taken for them.
    mutating func distinguish() {
        volume.key = "\(identity.key)@\(String(place.device, radix: 16))/\(folder)"
    }

    /// Whether `root` is what it was when it was taken up, under the same name. Blocks.
    func isStill(at root: FilePath) -> Bool {
        guard FolderPlace(root) == place else { return false }
        if !isVolume { return true }
        // Its runner begins anew then, and says what is wrong.
        guard let now = try? VolumeFinder().place(of: root) else { return false }
        return isStill(now.volume) && now.folder == folder && FolderPlace(root) == place
    }

    /// Whether it is the volume that it was, by the name that it had: under a better one it is taken up anew, or its files would be
    /// new the next time.
    func isStill(_ now: VolumeIdentity) -> Bool { now.isSame(as: identity) != false && !identity.isOutnamed(by: now) }

    /// By what its files may be known from a time when less was known of the volume. Nothing of one that has a double.
    var weakerKeys: [String] {
        guard isVolume, volume.key == Volume(identity, folder: folder).key else { return [] }
        return identity.weakerKeys.map { "\($0)/\(folder)" }
    }
}
