internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Empty files. Some are complete; others only hold the name of what is still being fetched, and are replaced by it.
extension SettledFiles {
    /// Before an empty file is looked at again beside which something is being fetched: nothing tells when that is given up.
    private static let partPause = Duration.seconds(5)

    /// What a look at a file means, which stands for itself or for its companions, where it is empty: it has the longer quiet
    /// time, and waits as long as what it is to become is beside it under a name of its own.
    mutating func whenFilled(_ path: FilePath, _ look: Settler.Look) -> Settler.Look {
        let (identity, quiet): (FileIdentity, Duration)
        switch look {
        case .file(let found, busy: false): (identity, quiet) = (found, settle(for: path) ?? settle)
        case .bound(let found, busy: false, let own, _): (identity, quiet) = (found, own)
        default: return look
        }
        guard identity.size == 0, settleEmpty > .zero else { return look }
        if let part = parts.part(of: path, &turn) {
            return .waiting(for: Self.partPause, why: "empty, and \(part) is beside it: waiting for that to be whole")
        }
        if quiet >= settleEmpty { return look }
        let why = "empty: it may only hold the name of what is on its way (settle_empty)"
        return .bound(identity, busy: false, quiet: settleEmpty, why: why)
    }
}

/// What programs are fetching in the folder that was asked about last.
struct PartNames: Sendable {
    private var known: (folder: FilePath, parts: [FileName])?
    /// Names of one folder that are read for that.
    private static let most = 100_000

    /// The name, to be shown, under which the file at `path` is being fetched; nil where none is seen. Blocks.
    mutating func part(of path: FilePath, _ turn: inout FolderTurn) -> String? {
        let folder = path.removingLastComponent()
        if known?.folder != folder { known = (folder, Self.parts(in: folder, &turn)) }
        let name = FileName(path)
        return known?.parts.first { $0.isPart(of: name) }.map { DisplayText.escape($0.bytes) }
    }

    private static func parts(in folder: FilePath, _ turn: inout FolderTurn) -> [FileName] {
        var parts: [FileName] = []
        do throws(SystemError) {
            var names = try turn.folder(folder).list()
            var room = most
            while room > 0, let entry = try names.next() {
                room -= 1
                let name = FileName(bytes: entry.name.bytes)
                if name.isOfPart { parts.append(name) }
            }
        } catch {
            // Without it the longer quiet time counts, as where nothing tells of what is being fetched.
        }
        return parts
    }

    /// The turn is over: what was seen is out of date.
    mutating func forget() { known = nil }
}
