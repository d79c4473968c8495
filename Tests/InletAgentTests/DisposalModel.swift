import Foundation
import InletCore
import InletLinux
import SystemPackage

@testable import InletAgent
@testable import InletJournal

/// A watched folder, an archive, a journal's row and the people who work in the folder, in memory: what `Disposal` decides is
/// carried out on it, and between any two steps somebody may do something, a call may fail, or the process may die.
struct DisposalModel {
    /// How a history differs from others before it begins.
    struct Setting: CustomStringConvertible {
        var action: FinishAction
        /// Whether what was delivered was proved by more than its length.
        var hasChecksum: Bool
        /// Whether nothing of it was sent, as another file has its content.
        var isLinked: Bool
        var isOtherDisk: Bool
        /// Whether the kernel does not tell who writes.
        var areWritersUnknown: Bool
        /// Whether a person has a linked file removed, and whether its destinations have its content then.
        var (isOrdered, hasCopies) = (false, true)

        init(action: FinishAction) {
            self.action = action
            (hasChecksum, isLinked, isOtherDisk, areWritersUnknown) = (false, false, false, false)
        }

        init(_ random: inout SeededGenerator) {
            action = [.archive, .delete, .quarantine].randomElement(using: &random) ?? .archive
            hasChecksum = random.fraction() < 0.5
            isLinked = random.fraction() < 0.2
            isOtherDisk = random.fraction() < 0.4
            areWritersUnknown = random.fraction() < 0.25
            guard action == .delete, random.fraction() < 0.4 else { return }
            (isLinked, isOrdered, hasCopies) = (true, true, random.fraction() < 0.5)
        }

        var description: String {
            "\(action)" + (hasChecksum ? ", checksum" : "") + (isLinked ? ", linked" : "")
                + (isOtherDisk ? ", other disk" : "") + (areWritersUnknown ? ", writers unknown" : "")
                + (isOrdered ? hasCopies ? ", ordered" : ", ordered without copies" : "")
        }
    }

    final class Inode {
        let number: UInt64
        var device: UInt64
        var content: String
        var modified: Int64
        var changed: Int64

        init(_ number: UInt64, _ device: UInt64, _ content: String, modified: Int64, changed: Int64) {
            (self.number, self.device, self.content) = (number, device, content)
            (self.modified, self.changed) = (modified, changed)
        }

        /// All contents have one length.
        var identity: FileIdentity {
            FileIdentity(size: 7, modified: modified, changed: changed, inode: number, device: device)
        }
    }

    static let root = FilePath("/drop")
    static let own = root.pushing("sub/a")
    static let delivered = "first"
    /// Of the file that was delivered, whatever is written into it since.
    static let number: UInt64 = 1

    let setting: Setting
    let places: FinishFolders
    var files: [FilePath: Inode] = [:]
    var isRootHere = true
    /// Open for writing, since when.
    var writer: (inode: Inode, since: Int64)?
    /// What somebody finished writing, and nobody overwrote or removed.
    var owed: Set<String> = [delivered]
    /// Of how many files it may be, where that is more than one: people have given it other names.
    var most: [String: Int] = [:]
    /// Files whose last name that people know was taken away by them.
    private var forsaken: Set<UInt64> = []
    var needingJob: Int64?
    /// The journal's row.
    var job: Job
    var now: Int64 = 1_000_000
    private var lastNumber: UInt64 = 10
    private var lastContent = 0

    /// What a power cut may undo: the renames and removals of ours since the last `synchronize`; what people do makes them durable.
    private var undos: [(inode: Inode, from: FilePath, to: FilePath?, changed: Int64)] = []

    // What the process has open.
    private var names: [DisposalName: FilePath] = [:]
    private var isRootReal: Bool?
    private var wanted: FilePath?

    init(_ setting: Setting) {
        self.setting = setting
        var places = FinishFolders(root: Self.root, settings: nil)
        places.hold = .seconds(600)
        if setting.isOtherDisk { (places.archive, places.quarantine) = ("/shelf/done", "/shelf/failed") }
        self.places = places
        let file = Inode(Self.number, 1, Self.delivered, modified: 500, changed: 600)
        files[Self.own] = file
        job = Self.job(setting, file.identity)
    }

    private static func job(_ setting: Setting, _ identity: FileIdentity) -> Job {
        var policy = FilePolicy(onSuccess: .keep, onFailure: .keep, retry: RetryPolicy())
        switch setting.action {
        case .archive: policy.onSuccess = .archive
        case .delete where setting.isOrdered: policy.answer = .removed
        case .delete: policy.onSuccess = .delete
        case .quarantine: policy.onFailure = .quarantine
        case .keep: break
        }
        let digest = Digest(.sha256, [UInt8](repeating: 7, count: 32))
        let content = ContentHash(digest: digest, partSize: nil)
        let file = FileRow(
            id: 5, root: root, path: "sub/a", identity: identity,
            state: setting.action == .quarantine ? .failed : setting.isOrdered ? .duplicate : .delivered,
            mediaType: "text/plain", policy: policy, content: setting.hasChecksum ? content : nil,
            admittedAt: WallTime(milliseconds: 0), labels: [:], digests: [])
        let proof = Proof(
            key: "a", size: 7, method: .sha256, content: content, details: [Proof.sameAsName: "4"])
        let delivery = DeliveryRow(
            id: 1, fileID: 5, destination: "here", fields: [:], state: .delivered, attempts: 1, nextAt: file.admittedAt,
            proof: setting.isLinked ? proof : nil, waits: 0, crashes: 0)
        return Job(file: file, deliveries: [delivery])
    }

    static func isPrivate(_ path: FilePath) -> Bool {
        path.components.contains { $0.string.hasPrefix(".inlet-finishing") || $0.string == "held" }
    }

    /// The process died, and another one begins.
    mutating func restart() { (names, isRootReal, wanted) = ([:], nil, nil) }

    /// The last changes of names that nobody made durable are undone.
    mutating func cutPower(undoing count: Int = .max) {
        for undo in undos.suffix(count).reversed() {
            if let target = undo.to { files[target] = nil }
            files[undo.from] = undo.inode
            undo.inode.changed = undo.changed
        }
        undos = []
    }

    var undoable: Int { undos.count }

    // MARK: - Steps

    /// - Parameter error: what the call answers, instead of being made or although it was.
    mutating func take(_ step: DisposalStep, failing error: Errno? = nil, afterwards isMade: Bool = false)
        -> DisposalStepResult
    {
        if let error, !isMade { return .failed(SystemError(call: "call", code: error)) }
        do {
            let fact = try carryOut(step)
            if let error { return .failed(SystemError(call: "call", code: error)) }
            if case .synchronize = step { undos = [] }
            return fact
        } catch {
            return .failed(error)
        }
    }

    private mutating func carryOut(_ step: DisposalStep) throws(SystemError) -> DisposalStepResult {
        switch step {
        case .look(let name, let path):
            names[name] = path
            return try find(path).map { .found($0.identity) } ?? .missing
        case .compare(let name, _): return .content(try inode(name).content == Self.delivered ? .same : .another)
        case .proveLinks: return .answer(try inode(.own).content == Self.delivered)
        case .proveCopies: return .copies(setting.hasCopies ? .proved("it is there") : .unproved("it is not there"))
        case .askWriter(let name):
            let file = try inode(name)
            if setting.areWritersUnknown { return .writer(.unknown("nobody tells")) }
            return .writer(writer?.inode === file ? .busy : .free)
        case .askRoot:
            if !isRootHere { return .root(.away) }
            return .root(isRootReal == true ? .here : .unknown)
        case .synchronize:
            if isRootReal == true, !isRootHere { throw SystemError(call: "fsync", code: .ioError) }
            return .done
        case .makeWritable, .writeReason: return .done
        case .begin(let intent):
            if let needingJob { return .needed(by: needingJob) }
            return note(intent)
        case .note(let intent): return note(intent)
        case .remember(let identity):
            job.file.identity = identity
            return .done
        case .hide(let identity, let path):
            guard try inode(.own).identity == identity else { return .content(.moving) }
            names[.hidden] = path
            return .found(try rename(Self.own, to: path).identity)
        case .giveBack(let identity): return try giveBack(identity)
        case .putBack: return .put(try putBack())
        default: return try away(step)
        }
    }

    private mutating func away(_ step: DisposalStep) throws(SystemError) -> DisposalStepResult {
        switch step {
        case .chooseTarget(let path, let number):
            if number == 1 { wanted = path }
            let target = numbered(wanted ?? path, number)
            names[.target] = target
            let copy = target.removingLastComponent().appending(".a.inlet-draft.tmp")
            return try find(target) == nil ? .free(target: target, copy: copy) : .taken
        case .compareCopy(let name):
            let (target, file) = (try inode(.target), try inode(name))
            if target === file { return .answer(true) }
            return .answer(
                target.identity.isKnown(as: file.identity) && target.device != file.device
                    && target.content == file.content)
        case .move(let identity):
            let (hidden, target) = (names[.hidden] ?? "", names[.target] ?? "")
            if setting.isOtherDisk { throw SystemError(call: "rename", code: .improperLink) }
            if try find(hidden)?.number != identity.inode {
                throw SystemError(call: "rename", code: .staleNFSFileHandle)
            }
            _ = try rename(hidden, to: target)
        case .copy(let identity): try copy(identity)
        case .removeCopy(let path): files[path] = nil
        case .remove(let identity):
            let file = try inode(.hidden)
            guard file.number == identity.inode else {
                throw SystemError(call: "unlink", code: .staleNFSFileHandle)
            }
            undos.append((file, names[.hidden] ?? "", nil, file.changed))
            files[names[.hidden] ?? ""] = nil
        default: throw SystemError(call: "nothing", code: .invalidArgument)
        }
        return .done
    }

    private mutating func note(_ intent: FinishIntent?) -> DisposalStepResult {
        // One that cannot be encoded is never made.
        job.file.intent = try? intent?.note
        return .done
    }

    private mutating func copy(_ identity: FileIdentity) throws(SystemError) {
        let (file, target) = (try inode(.hidden), names[.target] ?? "")
        guard file.identity == identity else { throw SystemError(call: "copy", code: .ioError) }
        guard files[target] == nil else { throw SystemError(call: "rename", code: .fileExists) }
        lastNumber += 1
        files[target] = Inode(lastNumber, 2, file.content, modified: file.modified, changed: tick())
    }

    /// Where a rename is a link and an unlink: what is left when the process dies in between.
    mutating func dieInRename(_ step: DisposalStep) {
        let names: (FilePath?, FilePath?) =
            switch step {
            case .hide(_, let path): (Self.own, path)
            case .giveBack, .putBack: (names[.hidden], Self.own)
            case .move: (names[.hidden], setting.isOtherDisk ? nil : names[.target])
            default: (nil, nil)
            }
        guard isRootHere, let old = names.0, let new = names.1, let file = files[old], files[new] == nil else { return }
        files[new] = file
        file.changed = tick()
    }

    /// What is left of a copy in which the process died.
    mutating func dieInCopy() {
        guard let note = job.file.intent, let path = (try? FinishIntent(note))?.copyFile else { return }
        lastNumber += 1
        files[path] = Inode(lastNumber, 2, "half", modified: 0, changed: tick())
    }

    private mutating func giveBack(_ identity: FileIdentity) throws(SystemError) -> DisposalStepResult {
        let isIt = try inode(.hidden).identity == identity
        let file = try rename(names[.hidden] ?? "", to: Self.own)
        names[.own] = Self.own
        return isIt ? .found(file.identity) : .done
    }

    private mutating func putBack() throws(SystemError) -> FilePath {
        var number = 1
        while try find(numbered(Self.own, number)) != nil { number += 1 }
        _ = try rename(names[.hidden] ?? "", to: numbered(Self.own, number))
        return numbered(Self.own, number)
    }

    private func numbered(_ path: FilePath, _ number: Int) -> FilePath {
        guard number > 1, let name = path.lastComponent else { return path }
        return path.removingLastComponent().appending(FinishFolders.numbered(name, number))
    }

    // MARK: - The folder

    /// What has the name in the folder that the process has open; the disk may have come or gone since.
    private mutating func find(_ path: FilePath) throws(SystemError) -> Inode? {
        guard path.isWithin(Self.root) else { return files[path] }
        let isReal = isRootReal ?? isRootHere
        isRootReal = isReal
        if !isReal { return nil }
        if !isRootHere { throw SystemError(call: "stat", path: path, code: .ioError) }
        return files[path]
    }

    private mutating func inode(_ name: DisposalName) throws(SystemError) -> Inode {
        guard let path = names[name], let file = try find(path) else {
            throw SystemError(call: "open", path: names[name], code: .noSuchFileOrDirectory)
        }
        return file
    }

    @discardableResult
    private mutating func rename(_ path: FilePath, to target: FilePath) throws(SystemError) -> Inode {
        guard let file = try find(path) else { throw SystemError(call: "rename", code: .noSuchFileOrDirectory) }
        guard try find(target) == nil else { throw SystemError(call: "rename", code: .fileExists) }
        undos.append((file, path, target, file.changed))
        files[path] = nil
        files[target] = file
        file.changed = tick()
        return file
    }

    private mutating func tick() -> Int64 {
        now += 1
        return now * 1_000_000
    }

    /// - Returns: a content that nobody else writes.
    mutating func content() -> String {
        lastContent += 1
        return "edit \(lastContent)"
    }

    mutating func edit(_ file: Inode, restoringTimes: Bool) {
        undos = []
        let text = content()
        owed.remove(file.content)
        most[text] = most[file.content]
        // What has no name any more is nobody's to keep.
        let isKept = files.contains {
            $0.value === file && !(forsaken.contains(file.number) && Self.isPrivate($0.key))
        }
        if isKept { owed.insert(text) }
        file.content = text
        file.changed = tick()
        if !restoringTimes { file.modified = file.changed }
    }

    /// Another file comes under the name, over what has it.
    mutating func replace(_ path: FilePath, restoringTimes: Bool) {
        undos = []
        if let old = files[path] { drop(old, path) }
        lastNumber += 1
        let text = content()
        owed.insert(text)
        let time = tick()
        files[path] = Inode(lastNumber, 1, text, modified: restoringTimes ? 500 : time, changed: time)
    }

    /// Somebody takes a name away.
    mutating func drop(_ file: Inode, _ path: FilePath) {
        undos = []
        files[path] = nil
        file.changed = tick()
        // They know nothing of the private one, which it may have besides.
        let isThere = files.contains { $0.value === file && !Self.isPrivate($0.key) }
        if !isThere {
            owed.remove(file.content)
            forsaken.insert(file.number)
        }
    }

    mutating func link(_ file: Inode, _ path: FilePath) {
        undos = []
        files[path] = file
        file.changed = tick()
        // What was copied to the other disk before is there a second time.
        most[file.content, default: 1] += 1
    }
}
