import InletCore
import InletJournal
import InletLinux
import SystemPackage
import Testing

@testable import InletAgent

/// What an answer makes of the next step, of a file that is archived after it was proved by its length alone.
@Suite struct DisposalRuleTests {
    private static let setting = DisposalModel.Setting(action: .archive)
    private static let ioError = SystemError(call: "rename", code: .ioError)
    private let model = DisposalModel(Self.setting)
    private var identity: FileIdentity { model.job.file.identity }
    private var now: WallTime { WallTime(milliseconds: 0) }

    /// The step after these answers. The first is given to a machine that has not begun.
    private func step(_ facts: [DisposalStepResult], of job: Job? = nil) -> DisposalStep {
        var disposal = Disposal(job ?? model.job, model.places)
        var step = disposal.next(.begun, at: now)
        for fact in facts { step = disposal.next(fact, at: now) }
        return step
    }

    /// Up to the rename to the private name.
    private var toRename: [DisposalStepResult] { [.found(identity), .writer(.free), .done, .done] }

    /// As after a crash.
    private func begun(isMoving: Bool, changed: Int64? = nil, copy: FilePath? = nil) throws -> Job {
        var intent = FinishIntent(
            action: .archive, privateFile: model.places.privateFile(model.job.file),
            target: model.places.target(model.job.file, .archive))
        (intent.isMoving, intent.changed, intent.copy) = (isMoving ? true : nil, changed, copy?.bytes)
        var job = model.job
        job.file.intent = try intent.note
        return job
    }

    @Test func `a look that fails is an error, not a file that is not there`() {
        guard case .fail = step([.failed(Self.ioError)]) else { return wrong("it did not fail") }
    }

    @Test(arguments: [DisposalStepResult.Root.away, .unknown])
    func `a file that is not there is not gone while its disk is not there`(_ root: DisposalStepResult.Root) {
        guard case .askRoot = step([.missing]) else { return wrong("nobody asked for the disk") }
        guard case .wait = step([.missing, .root(root)]) else { return wrong("it did not wait") }
        guard case .end(let end, nil, nil) = step([.missing, .root(.here)]) else { return wrong("it did not end") }
        #expect(end == Disposition.untouched("it is no longer there"))
    }

    @Test
    func `a rename that failed may have been made: its intent is taken back only when it is sure that it was not`() {
        let failed = toRename + [.failed(Self.ioError)]
        guard case .look(.hidden, _) = step(failed) else { return wrong("it was not looked at") }
        guard case .fail = step(failed + [.found(identity)]) else { return wrong("found hidden, and the intent goes") }
        guard case .fail = step(failed + [.failed(Self.ioError)]) else { return wrong("unknown, and the intent goes") }
        guard case .note(nil) = step(failed + [.missing]) else { return wrong("not hidden, and the intent stays") }
        guard case .fail = step(failed + [.missing, .done]) else { return wrong("the error was forgotten") }
    }

    @Test func `what is known of a copy that is whole stays known until its source is gone`() throws {
        let job = try begun(isMoving: true)
        // Not hidden; its own name; the copy is there, and whole.
        let facts: [DisposalStepResult] = [.missing, .found(identity), .found(identity), .answer(true), .done]
        guard case .hide = step(facts, of: job) else { return wrong("it is not hidden") }
        guard case .fail = step(facts + [.failed(Self.ioError), .missing], of: job) else {
            return wrong("the intent was taken back")
        }
    }

    @Test func `a file that was edited while it was hidden keeps the numbers of what was delivered`() throws {
        let job = try begun(isMoving: false, changed: identity.changed)
        var edited = identity
        edited.changed += 1
        for (found, isRemembered) in [(identity, true), (edited, false)] {
            let facts: [DisposalStepResult] = [.found(found), .missing, .writer(.busy)]
            guard case .giveBack = step(facts, of: job) else { return wrong("its writer does not get it") }
            let isNoted = if case .remember = step(facts + [.found(found)], of: job) { true } else { false }
            #expect(isNoted == isRemembered)
        }
    }

    @Test func `an intent is forgotten only when the names are durable, whoever gave the file its own one`() throws {
        let job = try begun(isMoving: false, changed: identity.changed)
        var edited = identity
        edited.modified += 1
        // Its writer gets it; it was edited; it had its name back before.
        for facts in [
            [.found(identity), .missing, .writer(.busy), .done], [.found(edited), .missing, .put(DisposalModel.own)],
            [.missing, .found(identity)], [.missing, .found(edited), .missing],
        ] as [[DisposalStepResult]] {
            guard case .synchronize = step(facts, of: job) else { return wrong("nothing is synchronized") }
            guard case .fail = step(facts + [.failed(Self.ioError)], of: job) else { return wrong("an error is lost") }
        }
    }

    @Test func `a hidden file of a share that has its own name again is left until the fleet was asked`() throws {
        let job = try begun(isMoving: false)
        let shared = FinishFolders(root: DisposalModel.root, settings: nil, mark: "abcdef-")
        for (places, asks) in [(shared, true), (model.places, false)] {
            var disposal = Disposal(job, places)
            var steps = [disposal.next(.begun, at: now)]
            for fact in [.missing, .found(identity), .done, .done] as [DisposalStepResult] {
                steps.append(disposal.next(fact, at: now))
            }
            guard case .note(nil) = steps[3] else { return wrong("its intent stays") }
            let waits = if case .wait = steps[4] { true } else { false }
            #expect(waits == asks)
        }
    }

    @Test func `a damaged intent, too, is forgotten only when the names are durable`() {
        var job = model.job
        job.file.intent = [UInt8(ascii: "{")]
        // Under none of its private names, and back under its own.
        let facts: [DisposalStepResult] = [.missing, .missing, .missing, .found(identity)]
        guard case .synchronize = step(facts, of: job) else { return wrong("nothing is synchronized") }
        guard case .fail = step(facts + [.failed(Self.ioError)], of: job) else { return wrong("an error is lost") }
    }

    @Test func `a file that lies edited under its own name is never called gone or deleted: it is looked at again`()
        throws
    {
        var edited = identity
        edited.modified += 1
        for facts in [[.missing, .found(edited), .missing, .done], [.missing, .found(edited), .found(edited), .done]]
            as [[DisposalStepResult]]
        {
            guard case .end(_, .superseded, nil) = step(facts, of: try begun(isMoving: true)) else {
                return wrong("it is not superseded")
            }
        }
    }

    @Test func `whoever could change it is asked for before it is judged for the last time`() throws {
        let job = try begun(isMoving: false, changed: identity.changed)
        guard case .askWriter(.hidden) = step([.found(identity), .missing], of: job) else {
            return wrong("nobody is asked")
        }
        guard case .look(.hidden, _) = step([.found(identity), .missing, .writer(.free)], of: job) else {
            return wrong("it is not looked at again")
        }
        var edited = identity
        edited.modified += 1
        guard case .putBack = step([.found(identity), .missing, .writer(.free), .found(edited)], of: job) else {
            return wrong("an edit was missed")
        }
    }

    @Test func `what is left of a copy keeps the intent that has its name, whatever else is found`() throws {
        let job = try begun(isMoving: true, copy: "/drop/.inlet/done/sub/.a.tmp")
        var edited = identity
        edited.modified += 1
        let left = [DisposalStepResult.failed(Self.ioError)]
        for facts in [
            [.found(edited), .missing, .missing, .put(DisposalModel.own), .done],
            [.missing, .missing, .missing, .root(.here), .done],
            [.missing, .found(edited), .missing, .done], [.missing, .found(identity), .missing, .done],
        ] as [[DisposalStepResult]] {
            guard case .fail(let error) = step(left + facts, of: job) else { return wrong("it is forgotten") }
            #expect((error as? SystemError)?.code == .ioError)
        }
    }

    /// Before it has another look, and its writers are asked for the last time.
    @Test
    func `what a person has removed is proved at its destinations while it is hidden, and else gets its name back`()
        throws
    {
        var setting = DisposalModel.Setting(action: .delete)
        (setting.isLinked, setting.isOrdered) = (true, true)
        let ordered = DisposalModel(setting)
        var job = ordered.job
        let intent = FinishIntent(
            action: .delete, privateFile: ordered.places.privateFile(job.file), target: nil)
        job.file.intent = try intent.note
        let hidden: [DisposalStepResult] = [.found(identity), .missing]
        guard case .proveCopies = step(hidden, of: job) else { return wrong("nobody is asked") }
        let proved = hidden + [.copies(.proved("here has it"))]
        guard case .look(.hidden, _) = step(proved, of: job) else { return wrong("it is not looked at again") }
        let looked = proved + [.found(identity), .missing]
        guard case .askWriter(.hidden) = step(looked, of: job) else { return wrong("no writer is asked for") }
        guard
            case .end(let end, nil, nil) = step(
                looked + [.writer(.free), .found(identity), .done, .done], of: job)
        else { return wrong("it is not removed") }
        #expect(end == Disposition.deleted(because: "here has it"))
        let unproved = hidden + [.copies(.unproved("not there"))]
        guard case .giveBack = step(unproved, of: job) else { return wrong("it stays hidden") }
        guard case .remember = step(unproved + [.found(identity)], of: job) else { return wrong("it becomes unknown") }
        let postponed = hidden + [.copies(.stopped), .found(identity), .done, .done, .done]
        guard case .wait = step(postponed, of: job) else { return wrong("a stop ends the order") }
        guard case .giveBack = step(hidden + [.failed(Self.ioError)], of: job) else {
            return wrong("an error is a proof")
        }
        // Its content is not the one of the file that was sent.
        guard case .end(let kept, nil, _) = step([.found(identity), .answer(false)], of: ordered.job) else {
            return wrong("it goes on")
        }
        #expect(Disposition.isKept(kept) && kept != Disposition.kept)
    }

    @Test(arguments: [FileAnswer.aside, .removed])
    func `an order that cannot be carried out ends with its reason, and the file in its place`(answer: FileAnswer) {
        var job = model.job
        (job.file.state, job.file.policy.answer) = (.duplicate, answer)
        guard case .end(let touched, nil, _) = DisposalStep.doubtful(job.file) else { return wrong("no end") }
        guard case .end(let kept, nil, _) = DisposalStep.kept(job.file) else { return wrong("no end") }
        #expect(Disposition.isKept(touched) && touched.contains("touched"))
        #expect(Disposition.isKept(kept) && kept.contains("volume_writes"))
        // What a person has left is in nobody's way, whatever its route does with others.
        job.file.policy.answer = .left
        job.file.policy.onSuccess = .delete
        #expect(FinishAction(job.file) == .keep)
    }

    @Test func `an answer to another step is an error that names both`() {
        guard case .fail(let error) = step([.taken]) else { return wrong("it went on") }
        #expect("\(error)".contains("looksAtOwn") && "\(error)".contains("taken"))
    }

    private func wrong(_ what: Comment) { Issue.record(what) }
}
