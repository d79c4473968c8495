internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// What is done next about one source whose deliveries have ended. What was found and done comes back as a `DisposalFact`, an
/// error too: it never stands for "nothing is there" or "nothing to do".
enum DisposalStep: Sendable {
    /// Opens the folder and looks at the name in it; what is done with that name later is done in this folder.
    case look(DisposalName, FilePath)
    /// Reads the file and holds it against the checksum that is known; it must be this one before and after.
    case compare(DisposalName, FileIdentity)
    /// Reads a file of which nothing was sent, and holds it against what was proved of the first one of its content.
    case proveLinks
    case askWriter(DisposalName)
    /// Whether the watched folder is there, and is the one in which was looked.
    case askRoot
    /// Makes the folder of a name, and sees that it takes files.
    case makeWritable(FilePath)
    /// Writes the first intent, unless a younger job needs the file.
    case begin(FinishIntent)
    case note(FinishIntent?)
    /// Journals the numbers that the file has now.
    case remember(FileIdentity)
    /// Renames the file, which must still be this one, to its private name.
    case hide(FileIdentity, as: FilePath)
    /// The last name, or its numbered one, and what a copy is called until it is whole.
    case chooseTarget(FilePath, number: Int)
    /// Whether the last name has a whole copy, on another file system, of what has this name.
    case compareCopy(DisposalName)
    case move(FileIdentity)
    case copy(FileIdentity)
    /// It is durable: its name is forgotten with the next copy.
    case removeCopy(FilePath)
    /// Removes what has the private name, which must be this file.
    case remove(FileIdentity)
    /// Makes durable what was renamed or removed in the folders that are open: until then a power cut may undo it, and the
    /// intent must not be forgotten.
    case synchronize
    /// Writes why it is in quarantine beside it.
    case writeReason(String)
    /// Gives the file its own name again, where that is free: `found` with its numbers now, where until then it was this one.
    case giveBack(FileIdentity)
    /// The same, or the first free one of its numbered names.
    case putBack
    case wait(until: WallTime, note: String)
    /// `state` is set when the file turned out to be superseded; `place` is where the source is now, nil where it is gone or
    /// another one.
    case end(String, state: FileState?, place: FilePath?)
    case fail(any Error)
}

/// The names by which a file is known on its way out.
enum DisposalName: Sendable { case own, hidden, target }

/// What came of a step.
enum DisposalFact: Sendable {
    enum Content: Sendable { case same, another, moving }
    /// `unknown` is told in a moment: nobody has looked yet, or it came back since it was looked for.
    enum Root: Sendable { case here, away, unknown }

    case begun
    case done
    case found(FileIdentity)
    /// No regular file has the name.
    case missing
    case content(Content)
    case answer(Bool)
    case writer(LeaseProbe)
    case root(Root)
    /// Another job, which has yet to send or finish the file.
    case needed(by: Int64)
    /// What the last name and its copy are to be.
    case free(target: FilePath, copy: FilePath)
    case taken
    /// Where the file has been put back.
    case put(FilePath)
    case failed(any Error)
}

extension DisposalStep {
    /// Whether nothing is left of the intent afterwards.
    var forgetsIntent: Bool {
        switch self {
        case .note(nil), .end: true
        default: false
        }
    }
}

/// A step was answered by a fact that is none of its own, or is none that can be done.
struct DisposalMisstep: Error, CustomStringConvertible {
    let state: String
    let seen: String

    var description: String { "the disposal cannot go on from \(state) with \(seen): this is a mistake in Inlet" }
}
