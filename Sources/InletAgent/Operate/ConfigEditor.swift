package import InletConfig
package import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import Synchronization
package import SystemPackage

/// Changes the configuration file for people at the page: the text in place, with the checks of a start, one change at
/// a time. The file's former versions stay beside it.
package final class ConfigEditor: Sendable {
    /// What a person wants of the file.
    package enum Wish: Sendable, Equatable {
        case edits([ConfigEdit])
        /// The former version of this name.
        case version(String)
    }

    /// The file as it is, for a form.
    package struct Form: Sendable {
        package var file: FilePath
        /// Of the file's text: a change is only made to the text that it began with.
        package var hash: String
        package var entries: [ConfigEdit.List: [ConfigText.Entry]] = [:]
        /// Why the text cannot be changed here.
        package var errors: [ConfigFault] = []
        /// Why nothing can be written here; the change can still be tried, and its lines be pasted.
        package var objection: String?
        /// Of former texts, the newest first.
        package var versions: [String] = []
    }

    /// What a change would do.
    package struct Trial: Sendable {
        package var diff: [TextDiff.Line] = []
        package var changes: [ConfigChange] = []
        package var warnings: [ConfigFault] = []
        /// Why the change must not be made; empty for a good one.
        package var errors: [ConfigFault] = []
        /// Why it takes effect only after a restart.
        package var restart: String?
        /// What would become of the files that are there.
        package var files: FileTrial?
    }

    package struct FileTrial: Sendable {
        package var findings: [DryRun.Finding] = []
        package var (planned, known, others) = (0, 0, 0)
        /// Whether there are more files than were looked at.
        package var isPartial = false
    }

    package enum Fault: Error, Sendable {
        /// The file has another text than the one that the change began with.
        case changed([TextDiff.Line])
        case refused(String)
    }

    /// A change that was written.
    package struct Applied: Sendable {
        package var outcome: ReloadOutcome
        /// Why it takes effect only after a restart; then nothing was reloaded.
        package var restart: String?
    }

    /// Former versions of the file that are kept.
    package static let mostVersions = 10

    private let shared: Shared
    private let reload: Reload
    private let source: any ReloadSource
    private let confinement: ConfinementReport?
    /// One thread: two people's changes follow each other.
    private let pool = BlockingPool(name: "config", threads: 1)
    /// The texts with which the last forms began, for showing what somebody else changed since.
    private let begun = Mutex<[(hash: String, bytes: [UInt8])]>([])
    private static let mostBegun = 4

    init(_ shared: Shared, _ reload: Reload, _ source: any ReloadSource, _ confinement: ConfinementReport?) {
        (self.shared, self.reload, self.source, self.confinement) = (shared, reload, source, confinement)
    }

    private var file: FilePath { source.config.file }

    /// The JSON schema of the file.
    package var schema: String { ConfigSchema.json(types: source.types) }

    // MARK: - Looking

    /// - Throws: the reason that the file cannot be read.
    package func form() async throws -> Form {
        try await pool.run { [self] in
            let bytes = try DurableFile.read(file, limit: ConfigFile.maximumBytes)
            var form = Form(file: file, hash: Self.hash(bytes), objection: objection(), versions: versions())
            remember(form.hash, bytes)
            do throws(ConfigErrors) {
                let text = try ConfigText(bytes, types: source.types, file: file.display)
                for list in ConfigEdit.List.allCases { form.entries[list] = text.entries(list) }
            } catch {
                form.errors = error.list.map { ConfigFault($0) }
            }
            return form
        }
    }

    /// Tries a change without making it.
    ///
    /// - Parameter looksAtFiles: also lists the watched folders, as far as that takes some seconds.
    /// - Throws: `Fault`.
    package func trial(of wish: Wish, since hash: String, looksAtFiles: Bool) async throws -> Trial {
        let (old, new) = try await pool.run { [self] in try texts(wish, hash) }
        var trial = Trial(diff: TextDiff.lines(from: side(old), to: side(new)))
        let prepared: PreparedReload
        do throws(ConfigErrors) {
            prepared = try await pool.run { [source] () throws(ConfigErrors) in try source.check(new) }
        } catch {
            trial.errors = error.list.map { ConfigFault($0) }
            return trial
        }
        trial.changes = ConfigDiff.changes(from: reload.running, to: prepared.config, types: source.types)
        trial.warnings = prepared.config.warnings.map { ConfigFault($0) }
        trial.restart = source.restartReason(prepared.config)
        if looksAtFiles { trial.files = try await files(prepared) }
        return trial
    }

    private func texts(_ wish: Wish, _ hash: String) throws -> (old: [UInt8], new: [UInt8]) {
        let old = try DurableFile.read(file, limit: ConfigFile.maximumBytes)
        guard Self.hash(old) == hash else {
            let begun = begun.withLock { $0.first { $0.hash == hash }?.bytes }
            throw Fault.changed(begun.map { TextDiff.lines(from: side($0), to: side(old)) } ?? [])
        }
        let new: [UInt8]
        switch wish {
        case .edits(let edits):
            do {
                new = try ConfigText(old, types: source.types, file: file.display).applying(edits)
            } catch let errors as ConfigErrors {
                throw Fault.refused("correct the file first: \(errors)")
            } catch let fault as ConfigEditFault {
                throw Fault.refused("\(fault)")
            }
        case .version(let name):
            guard versions().contains(name) else { throw Fault.refused("there is no version \(name) any more") }
            new = try DurableFile.read(folder.appending(name), limit: ConfigFile.maximumBytes)
        }
        if new == old { throw Fault.refused("nothing would change") }
        return (old, new)
    }

    private func side(_ bytes: [UInt8]) -> TextDiff.Side {
        let defaults = ConfigDefaults(stateDirectory: "/", home: nil, workingDirectory: "/")
        return ConfigFile.side(bytes, file: file, types: source.types, defaults: defaults)
    }

    private func remember(_ hash: String, _ bytes: [UInt8]) {
        begun.withLock { begun in
            begun.removeAll { $0.hash == hash }
            begun.append((hash, bytes))
            if begun.count > Self.mostBegun { begun.removeFirst() }
        }
    }

    private static func hash(_ bytes: [UInt8]) -> String { SHA256.bytes(of: bytes).hex }

    // MARK: - The files that are there

    private static let mostFiles = 5000
    private static let mostShown = 50
    private static let patience = Duration.seconds(5)

    private struct Enough: Error {}

    private func files(_ prepared: PreparedReload) async throws -> FileTrial {
        let listing = BlockingPool(name: "trial", threads: 1)
        defer { listing.shutdown() }
        var run = DryRun(
            prepared.config.settings.routes, prepared.destinations, past: .live(shared.journal), on: listing)
        var trial = FileTrial()
        let end = ContinuousClock.now.advanced(by: Self.patience)
        do {
            for watch in prepared.config.settings.watch {
                try await run.run(watch) { finding in
                    trial.add(finding, mostShown: Self.mostShown)
                    if trial.planned + trial.known + trial.others >= Self.mostFiles || .now > end { throw Enough() }
                }
            }
        } catch is Enough {
            trial.isPartial = true
        } catch let error as SystemError {
            // A folder that is not there has no files; the agent waits for it.
            guard error.isMissing else { throw error }
            trial.isPartial = true
        }
        return trial
    }

    // MARK: - Writing

    /// Writes a change, and has it take effect. A change that then proves unusable is taken back.
    ///
    /// - Parameter by: who, for the log.
    /// - Throws: `Fault`, or `SystemError` before anything has changed.
    package func apply(_ wish: Wish, since hash: String, by who: String) async throws -> Applied {
        let (old, new, changes, restart) = try await pool.run { [self] in try write(wish, hash) }
        let outcome = restart == nil ? await reload.reload() : .done(changes: changes, parked: 0)
        switch outcome {
        case .done:
            let isUndo = if case .version = wish { true } else { false }
            shared.log.emit(.configEdited(file: file, by: who, changes: changes.map(\.path), isUndo: isUndo))
        case .refused, .failed:
            try await pool.run { [self] in
                // Somebody else's text stays.
                if try DurableFile.read(file, limit: ConfigFile.maximumBytes) == new {
                    try DurableFile.replace(file, with: old)
                }
            }
        }
        return Applied(outcome: outcome, restart: restart)
    }

    private func write(
        _ wish: Wish, _ hash: String
    ) throws -> (old: [UInt8], new: [UInt8], changes: [ConfigChange], restart: String?) {
        if let objection = objection() { throw Fault.refused(objection) }
        let (old, new) = try texts(wish, hash)
        let prepared: PreparedReload
        do throws(ConfigErrors) { prepared = try source.check(new) } catch { throw Fault.refused("\(error)") }
        let changes = ConfigDiff.changes(from: reload.running, to: prepared.config, types: source.types)
        let kept = try keep()
        do throws(SystemError) {
            try DurableFile.replace(file, with: new)
        } catch {
            // It is another name of the file itself.
            DurableFile.discard(kept)
            throw error
        }
        prune()
        return (old, new, changes, source.restartReason(prepared.config))
    }

    /// Why the file cannot be written; nil where it can.
    private func objection() -> String? {
        guard shared.settings.settings.dashboard?.mayEdit == true else {
            return "the configuration does not allow changes on the page; add 'edit: true' to dashboard, and restart"
        }
        let real = file.realPath ?? file
        do throws(SystemError) {
            let owner = try FileOwner.ofFile(real)
            let user = ProcessSetup.userID
            if user != 0, owner.user != user || !ProcessSetup.groups.contains(owner.group) {
                return
                    "\(file.display) belongs to user \(owner.user) and group \(owner.group), and Inlet runs as user \(user), which cannot keep that; 'chown \(user) \(file.display)' gives it the file"
            }
            try DurableFile.requireWritable(real.removingLastComponent())
        } catch {
            return "the agent cannot write beside the configuration, which needs 'chmod g+w' of its folder: \(error)"
        }
        if confinement?.mayWrite(in: real.removingLastComponent()) == false {
            return "the agent gave up writing in \(real.removingLastComponent().display) at its start; restart it"
        }
        return nil
    }

    // MARK: - Former versions

    private var folder: FilePath { (file.realPath ?? file).removingLastComponent() }
    private var name: String { (file.realPath ?? file).lastComponent?.string ?? "" }
    private static let ending = ".old"

    /// Their names, the newest first.
    private func versions() -> [String] {
        var found: [String] = []
        do throws(SystemError) {
            var stream = try DirectoryStream(folder)
            while let entry = try stream.next() {
                let text = entry.name.string
                if entry.kind == .regular, text.hasPrefix(name + "."), text.hasSuffix(Self.ending) {
                    found.append(text)
                }
            }
        } catch {
            // Without permission to list there is nothing to go back to.
            return []
        }
        return found.sorted(by: >)
    }

    /// Gives the present file a second name, which it keeps when the new text takes its place: mode and owner with it.
    private func keep() throws -> FilePath {
        let time = WallTime.now.rfc3339.replacing(":", with: "-")
        let path = folder.appending("\(name).\(time)\(Self.ending)")
        try DurableFile.addName(path, to: file.realPath ?? file)
        return path
    }

    private func prune() {
        for old in versions().dropFirst(Self.mostVersions) { DurableFile.discard(folder.appending(old)) }
    }
}

extension ConfigEditor.FileTrial {
    fileprivate mutating func add(_ finding: DryRun.Finding, mostShown: Int) {
        switch finding.verdict {
        case .planned: planned += 1
        case .known: known += 1
        default: others += 1
        }
        if case .known = finding.verdict { return }
        if findings.count < mostShown { findings.append(finding) }
    }
}
