import InletAgent
import InletCore
import InletJournal
import InletLinux
import Testing

@testable import InletDashboard

/// An order on a selection, after the question that named its number.
@Suite struct SelectionOrderTests {
    private static func selection(_ state: FileState) -> JobSelection {
        var selection = JobSelection()
        selection.states = [state.rawValue]
        return selection
    }

    @Test func `files that come while a person is asked are not meant`() async throws {
        let scene = try DashboardScene()
        defer { scene.journal.close() }
        for name in ["a", "b"] { try await scene.admit(name) }
        let all = Self.selection(.pending)
        let plan = try await scene.control.act(.cancel, on: all, dryRun: true)
        #expect(plan.matched == 2 && plan.upto == 2)
        let late = try await scene.admit("c")
        let report = try await scene.control.act(.cancel, on: all.among(plan), dryRun: false)
        #expect(report.done == 2 && report.matched == 2)
        #expect(try await scene.journal.job(late)?.file.state == .pending)
    }

    @Test func `nor are earlier files that end meanwhile`() async throws {
        let scene = try DashboardScene()
        defer { scene.journal.close() }
        for name in ["a", "b"] { try await scene.admit(name) }
        _ = try await scene.journal.act(.cancel, on: [2], at: .now + .seconds(-60))
        let all = Self.selection(.cancelled)
        let plan = try await scene.control.act(.retry, on: all, dryRun: true)
        #expect(plan.matched == 1 && plan.upto == 2)
        _ = try await scene.journal.act(.cancel, on: [1], at: .now + .seconds(60))
        let report = try await scene.control.act(.retry, on: all.among(plan), dryRun: false)
        #expect(report.done == 1)
        #expect(try await scene.journal.job(1)?.file.state == .cancelled)
    }

    @Test func `a question that matches nothing is followed by an order on nothing`() async throws {
        let scene = try DashboardScene()
        defer { scene.journal.close() }
        let all = Self.selection(.pending)
        let plan = try await scene.control.act(.cancel, on: all, dryRun: true)
        try await scene.admit("a")
        #expect(try await scene.control.act(.cancel, on: all.among(plan), dryRun: false).done == 0)
    }
}
