import InletCore
import SystemPackage
import Testing

/// What a new file is among those that it belongs together with, by what is known of them.
@Suite struct CompanionRuleTests {
    private static let now = WallTime(milliseconds: 1_000_000)

    private func rule(
        _ completion: Completion = .quiet, metadata: Bool = true, extensions: [String] = ["xmp"],
        skipBefore: WallTime? = nil
    ) -> CompanionRule {
        let route = Route(
            name: "clips", match: RouteMatch(extensions: ["mp4"]), to: ["a"],
            sidecars: SidecarRule(metadata: metadata, extensions: extensions, wait: .seconds(10)),
            completion: completion)
        return CompanionRule(routes: RouteTable([route]), settle: .seconds(5), skipBefore: skipBefore)
    }

    private func identity(_ inode: UInt64 = 1, age: Duration = .seconds(60)) -> FileIdentity {
        let time = (Self.now.milliseconds - age.milliseconds) * 1_000_000
        return FileIdentity(size: 1, modified: time, changed: time, inode: inode, device: 1)
    }

    private func arrival(_ path: FilePath) -> Arrival { Arrival(root: "/in", path: path, identity: identity()) }

    private func row(
        _ state: FileState = .delivered, code: ErrorCode? = nil, isFinished: Bool = true, _ inode: UInt64 = 1
    ) -> CompanionFacts.Row {
        CompanionFacts.Row(id: 7, state: state, code: code, isFinished: isFinished, identity: identity(inode))
    }

    /// What is there, old enough; and what the journal has of it.
    private func facts(
        _ there: [FilePath], rows: [FilePath: CompanionFacts.Row] = [:], known: Set<FilePath> = []
    ) -> CompanionFacts {
        var facts = CompanionFacts()
        for path in there { facts[path].identity = identity() }
        for (path, row) in rows { facts[path].row = row }
        for path in known { facts[path].isKnown = true }
        return facts
    }

    private func status(_ path: FilePath, _ facts: CompanionFacts, _ rule: CompanionRule? = nil) -> String {
        switch (rule ?? self.rule()).status(of: arrival(path), facts, at: Self.now) {
        case .alone: "alone"
        case .main(let found, let isWhole, _): "main \(found.map { $0.companion.ending }) \(isWhole)"
        case .marked(let found): "marked \(found.map { $0.companion.ending })"
        case .unmarked(let marker): "unmarked \(marker)"
        case .unsettled: "unsettled"
        case .waiting(let main, let wait): "waiting \(main) \(wait)"
        case .dormant: "dormant"
        case .late(_, let main, let quiet): "late \(main) \(quiet.map { "\($0)" } ?? "now")"
        case .corrected(let main, let job): "corrected \(main) \(job)"
        case .orphan(let quiet): "orphan \(quiet)"
        }
    }

    @Test func `of files that belong to no others nothing must be known`() {
        let plain = CompanionRule(
            routes: RouteTable([Route(name: "all", to: ["a"])]), settle: .seconds(5), skipBefore: nil)
        #expect(plain.around(arrival("clip.mp4")).disk.isEmpty && plain.around(arrival("clip.mp4")).journal.isEmpty)
        #expect(rule().around(arrival("clip.txt")).disk.isEmpty)
        #expect(status("clip.mp4", facts([]), plain) == "alone" && status("clip.txt", facts([])) == "alone")
    }

    @Test func `what the rule goes by is asked for`() {
        let (disk, journal) = rule(.marker).around(arrival("a/clip.mp4"))
        #expect(Set(disk).isSuperset(of: ["a/clip.mp4.done", "a/clip.mp4.yaml", "a/clip.mp4.xmp", "a/clip.xmp"]))
        #expect(Set(journal) == ["a/clip.mp4", "a/clip.mp4.done"])
        let companion = rule(.marker).around(arrival("a/clip.mp4.xmp"))
        #expect(Set(companion.disk).isSuperset(of: ["a/clip.mp4", "a/clip.mp4.done", "a/clip.mp4.yaml"]))
        #expect(Set(companion.journal).isSuperset(of: ["a/clip.mp4", "a/clip.mp4.done"]))
    }

    @Test func `a file is whole with all that its route names, and waits for the rest`() {
        #expect(status("clip.mp4", facts(["clip.mp4.yaml", "clip.xmp"])) == #"main ["yaml", "xmp"] true"#)
        #expect(status("clip.mp4", facts(["clip.xmp"])) == #"main ["xmp"] false"#)
        // Of `.yaml` and `.yml` the first counts.
        #expect(
            status("clip.mp4", facts(["clip.mp4.yaml", "clip.mp4.yml", "clip.xmp"])) == #"main ["yaml", "xmp"] true"#)
    }

    @Test func `a companion that somebody writes to is waited for`() {
        var written = facts(["clip.mp4.yaml", "clip.xmp"])
        #expect(
            rule().probed(for: arrival("clip.mp4"), written, at: Self.now).map(\.path) == ["clip.mp4.yaml", "clip.xmp"])
        written["clip.xmp"].isBusy = true
        #expect(status("clip.mp4", written) == #"main ["yaml"] false"#)
        var young = facts(["clip.mp4.yaml"])
        young["clip.xmp"].identity = identity(age: .seconds(1))
        #expect(status("clip.mp4", young) == #"main ["yaml"] false"#)
        // What cannot be complete yet is not opened.
        #expect(rule().probed(for: arrival("clip.mp4"), young, at: Self.now).map(\.path) == ["clip.mp4.yaml"])
        var marker = facts(["clip.mp4.done"])
        marker["clip.mp4.done"].isBusy = true
        #expect(status("clip.mp4", marker, rule(.marker)) == "unsettled")
    }

    @Test func `without its marker a file is left alone, and nothing beside it is opened`() {
        let rule = rule(.marker)
        let unmarked = facts(["clip.mp4.yaml", "clip.xmp"])
        #expect(status("clip.mp4", unmarked, rule) == "unmarked clip.mp4.done")
        #expect(rule.probed(for: arrival("clip.mp4"), unmarked, at: Self.now).isEmpty)
        #expect(status("clip.mp4", facts(["clip.mp4.done"]), rule) == #"marked ["done"]"#)
        #expect(status("clip.xmp", facts(["clip.mp4"]), rule) == "dormant")
        #expect(status("clip.xmp", facts(["clip.mp4", "clip.mp4.done"]), rule) == "waiting clip.mp4 10.0 seconds")
    }

    @Test func `a marker that has spoken before says nothing of what its file is now`() {
        let rule = rule(.marker)
        let (main, marker): (FilePath, FilePath) = ("clip.mp4", "clip.mp4.done")
        let spent = facts([marker], rows: [main: row(), marker: row()], known: [marker])
        #expect(status(main, spent, rule) == "unmarked \(marker)")
        // The journal was told to forget the file.
        #expect(status(main, facts([marker], rows: [marker: row()], known: [marker]), rule) == #"marked ["done"]"#)
        // It was written anew.
        #expect(status(main, facts([marker], rows: [main: row(), marker: row()]), rule) == #"marked ["done"]"#)
        // It went with what was replaced before it was sent: the very same one has spoken, another has not.
        for (inode, expected) in [(1, "unmarked \(marker)"), (2, #"marked ["done"]"#)] as [(UInt64, String)] {
            let rows = [main: row(.superseded), marker: row(.superseded, inode)]
            #expect(status(main, facts([marker], rows: rows), rule) == expected)
        }
    }

    @Test func `a companion waits until the journal has its file, and is late then`() {
        #expect(status("clip.xmp", facts(["clip.mp4"])) == "waiting clip.mp4 10.0 seconds")
        #expect(status("clip.xmp", facts(["clip.mp4"], rows: ["clip.mp4": row()], known: ["clip.mp4"])) == "late 7 now")
        // What is at the file's path is another one, which is not in the journal yet.
        #expect(status("clip.xmp", facts(["clip.mp4"], rows: ["clip.mp4": row()])) == "waiting clip.mp4 10.0 seconds")
        // The file was delivered and removed; another of its name may come.
        #expect(status("clip.xmp", facts([], rows: ["clip.mp4": row()])) == "late 7 10.0 seconds")
        for state in [FileState.gone, .superseded] {
            #expect(status("clip.xmp", facts([], rows: ["clip.mp4": row(state)])) == "orphan 10.0 seconds")
        }
        #expect(status("clip.xmp", facts([])) == "orphan 10.0 seconds")
    }

    @Test func `metadata puts a rejection right once its file is disposed of and nobody writes to it`() {
        let (main, yaml): (FilePath, FilePath) = ("clip.mp4", "clip.mp4.yaml")
        let rejected = facts(
            [main, yaml], rows: [main: row(.rejected, code: .badSidecar)], known: [main])
        #expect(status(yaml, rejected) == "corrected clip.mp4 7")
        #expect(rule().probed(for: arrival(yaml), rejected, at: Self.now).map(\.path) == [yaml])
        var written = rejected
        written[yaml].isBusy = true
        #expect(status(yaml, written) == "unsettled")
        let open = row(.rejected, code: .badSidecar, isFinished: false)
        #expect(status(yaml, facts([main, yaml], rows: [main: open], known: [main])) == "unsettled")
        // The first of the two counts; and other companions put nothing right.
        #expect(status("clip.mp4.yml", rejected) == "late 7 now" && status("clip.xmp", rejected) == "late 7 now")
        let other = row(.rejected, code: .rejected)
        #expect(status(yaml, facts([main, yaml], rows: [main: other], known: [main])) == "late 7 now")
    }

    @Test func `a file that was there before the folder was watched takes no companion along`() {
        #expect(status("clip.xmp", facts(["clip.mp4"]), rule(skipBefore: Self.now)) == "orphan 10.0 seconds")
    }
}
