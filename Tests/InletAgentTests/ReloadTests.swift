import Foundation
import InletConfig
import InletCore
import InletJournal
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// Another configuration for an agent that runs, on real folders.
@Suite struct ReloadTests {
    @Test func `new routes take the next file, and what runs goes on as it began`() async throws {
        let site = try ReloadSite(ReloadSite.text())
        let (here, there) = (site.here, site.there)
        let gate = Gate()
        here.script("a", .hold(gate, .deliver))
        let scene = try site.scene()
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("it runs") { here.record.running == 1 }
            site.write(ReloadSite.text(to: "[there]", key: "new/{name}"))
            let outcome = try ReloadSite.done(await stage.agent.control.reload())
            #expect(outcome.changes == ["routes[all].key", "routes[all].to"] && outcome.parked == 0)
            try scene.drop("b")
            try await stage.finished("b")
            #expect(there.record.stored.keys.sorted() == ["new/b"])
            #expect(here.record.running == 1)
            gate.open()
            try await stage.finished("a")
            #expect(here.attempts(at: "a") == 1 && here.record.stored.keys.sorted() == ["a"])
            #expect(stage.events.count("config.reloaded") == 1)
            #expect(try await stage.jobs().count == 2)
        }
    }

    @Test func `a folder that is added is watched, and one that is removed no more`() async throws {
        let site = try ReloadSite(ReloadSite.text())
        let scene = try site.scene()
        try await scene.run { stage in
            try scene.drop("a")
            try await stage.finished("a")
            try scene.directory.write(Array("x".utf8), to: "second/b")
            site.write(ReloadSite.text(roots: ["second"]))
            #expect(try ReloadSite.done(await stage.agent.control.reload()).changes.count == 2)
            try await stage.finished("b")
            try await eventually("one folder is watched") { stage.agent.control.live?.roots.count == 1 }
            try scene.drop("late")
            try scene.directory.write(Array("y".utf8), to: "second/c")
            try await stage.finished("c")
            #expect(try await stage.jobs().map(\.file.path.string).sorted() == ["a", "b", "c"])
            site.write(ReloadSite.text())
            _ = try ReloadSite.done(await stage.agent.control.reload())
            try await stage.finished("late")
            #expect(site.here.attempts(at: "a") == 1)
        }
    }

    @Test func `what waits for a destination that goes is parked, and goes on when it is back`() async throws {
        let site = try ReloadSite(ReloadSite.text(to: "[here, there]"))
        let (here, there) = (site.here, site.there)
        let gate = Gate()
        there.script("running", .hold(gate, .deliver))
        let scene = try site.scene()
        try await scene.run { stage in
            try scene.drop("running")
            try await eventually("it runs") { there.record.running == 1 }
            _ = try await stage.agent.control.setPaused(true, "there", by: "test")
            try scene.drop("waiting")
            try await stage.job("waiting", "delivered here") { job in
                job.deliveries.contains { $0.destination == "here" && $0.state == .delivered }
            }
            site.write(ReloadSite.text(destinations: ["here"]))
            #expect(try ReloadSite.done(await stage.agent.control.reload()).parked == 1)
            try await stage.job("waiting", "parked") { $0.deliveries.contains { $0.state == .parked } }
            gate.open()
            try await stage.finished("running")
            #expect(there.attempts(at: "running") == 1)
            try scene.drop("alone")
            try await stage.finished("alone")

            site.write(ReloadSite.text(to: "[here, there]"))
            _ = try ReloadSite.done(await stage.agent.control.reload())
            // Its pause is in the journal.
            #expect(there.attempts(at: "waiting") == 0)
            _ = try await stage.agent.control.setPaused(false, "there", by: "test")
            try await stage.finished("waiting")
            #expect(there.attempts(at: "waiting") == 1 && here.attempts(at: "waiting") == 1)
        }
    }

    @Test func `what comes back from a destination that is gone is parked too`() async throws {
        let site = try ReloadSite(ReloadSite.text(to: "[there]"))
        let there = site.there
        let gate = Gate()
        there.script("a", .hold(gate, .fail(DeliveryError(.retry(after: nil), .serverError, "not now"))))
        let scene = try site.scene()
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("it runs") { there.record.running == 1 }
            site.write(ReloadSite.text(destinations: ["here"]))
            #expect(try ReloadSite.done(await stage.agent.control.reload()).parked == 0)
            gate.open()
            try await stage.job("a", "parked") { $0.deliveries[0].state == .parked }
            site.write(ReloadSite.text(to: "[there]"))
            _ = try ReloadSite.done(await stage.agent.control.reload())
            try await stage.finished("a")
            #expect(there.attempts(at: "a") == 2)
        }
    }

    @Test func `a configuration that is wrong changes nothing, and is told with line, column and caret`() async throws {
        let site = try ReloadSite(ReloadSite.text())
        let scene = try site.scene()
        try await scene.run { stage in
            let before = stage.agent.control.live?.config
            site.write(ReloadSite.text(to: "[nowhere]", key: "new/{name}"))
            guard case .refused(let faults)? = await stage.agent.control.reload() else {
                Issue.record("it was taken")
                return
            }
            #expect(faults.count == 1 && faults[0].line == 4 && faults[0].excerpt.contains("^"), "\(faults)")
            let refused = stage.events.all.compactMap { event -> [String]? in
                if case .configRefused(_, let errors) = event { errors } else { nil }
            }
            #expect(refused == [faults.map(\.text)])
            #expect(stage.agent.control.live?.config == before)
            try scene.drop("a")
            try await stage.finished("a")
            #expect(site.here.record.stored.keys.sorted() == ["a"])
        }
    }

    @Test func `limits take effect, and what needs a restart is said and left`() async throws {
        let site = try ReloadSite(ReloadSite.text())
        let scene = try site.scene()
        try await scene.run { stage in
            site.write(ReloadSite.text(top: "workers: 9\nlimits: { bandwidth: 0, queue_warning: 3 }"))
            let changes = try ReloadSite.done(await stage.agent.control.reload()).changes
            #expect(changes.sorted() == ["limits.bandwidth", "limits.queue_warning", "workers"])
            #expect(stage.agent.control.live?.limits.first?.rate == 0)
            #expect(stage.agent.control.live?.destinations.allSatisfy(\.isShut) == true)
            let restart = stage.events.all.compactMap { event -> [String]? in
                if case .configReloaded(_, _, _, let restart, _) = event { restart } else { nil }
            }
            #expect(restart == [["workers"]])
            try scene.drop("a")
            try await stage.job("a")
            site.write(ReloadSite.text())
            #expect(try ReloadSite.done(await stage.agent.control.reload()).changes.count == 2)
            try await stage.finished("a")
        }
    }

    @Test func `files of a folder that left are archived where it said, also after a restart`() async throws {
        let site = try ReloadSite(
            ReloadSite.text(watch: ", archive_dir: .inlet/kept").replacing(
                "retry:", with: "on_success: archive, retry:"))
        let gate = Gate()
        site.here.script("a", .hold(gate, .deliver))
        let scene = try site.scene()
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("it runs") { site.here.record.running == 1 }
            site.write(ReloadSite.text(roots: ["second"]))
            _ = try ReloadSite.done(await stage.agent.control.reload())
            gate.open()
            try await stage.finished("a")
        }
        #expect(isThere(scene.directory.path.appending("drop").pushing(".inlet/kept/a")))
        let former = FormerRoots(stateDirectory: scene.directory.path.appending("state"))
        #expect(try former.beside([]).roots.count == 2)
        let left = try former.beside([WatchSettings(path: scene.directory.path.appending("second"))])
        #expect(left.roots.map(\.archiveDirectory) == [".inlet/kept"])
    }
}
