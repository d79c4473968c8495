import Foundation
import InletLinux
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// The whole way of a file, and what the log says of it.
@Suite(.serialized) struct DeliveryTests {
    @Test
    func `a dropped file arrives byte for byte, the agent ends with 0, and every log line is JSON with its fields`()
        async throws
    {
        try await withSpiral { place, sandbox in
            let agent = try await place.run()
            let content = bytes(11 << 20)
            try place.put("gigs/live set.mov", content)
            try await agent.line("job.finished")
            let object = try #require(sandbox.objects().first)
            #expect(object.key == "gigs/live_set.mov")
            #expect(try place.content(object.path) == content)
            #expect(object.versions == 1)
            #expect(place.exists(place.drop.appending("gigs").appending("live set.mov")))
            #expect(try await agent.stop() == .code(0))
            let delivered = try #require(agent.lines("job.delivered").first)
            #expect(delivered.number("size") == 11 << 20 && delivered.number("duration_ms") != nil)
            expectStory(agent)
        }
    }

    /// Of one file, from the start to the end.
    private func expectStory(_ agent: InletProcess) {
        #expect(agent.errors.split(separator: "\n").filter { (try? LogLine($0)) == nil } == [])
        let time = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/
        for line in agent.log {
            #expect(line["ts"]?.wholeMatch(of: time) != nil, "\(line)")
            #expect(["debug", "info", "warning", "error"].contains(line["level"]), "\(line)")
            #expect(!line.event.isEmpty)
            if ["job.started", "job.delivered", "transfer.progress"].contains(line.event) {
                #expect(line.number("job") != nil && line.isAbout("live set.mov"), "\(line)")
                #expect(line["destination"] == "store" && line["route"] == "all", "\(line)")
            }
        }
        let events = agent.log.map(\.event)
        let story = [
            "agent.started", "watch.added", "job.admitted", "job.started", "job.delivered", "job.finished",
            "agent.stopping",
        ]
        #expect(story.allSatisfy(events.contains), "\(events)")
    }

    @Test func `a picture arrives as it was taken, and no copy of it is left on the disk`() async throws {
        try await withSpiral { place, sandbox in
            let temporary = try place.folder.makeDirectory("temporary")
            let agent = try await place.run(environment: ["TMPDIR": temporary.string])
            let picture = Data(DatedPicture.jpeg("2024:05:06 07:08:09")) + bytes(6 << 20)
            try place.put("photo.jpg", picture)
            try await agent.line("job.finished") { $0["state"] == "delivered" }
            #expect(try await agent.stop() == .code(0))
            let object = try #require(sandbox.objects().first)
            #expect(object.contentType == "image/jpeg")
            #expect(try place.content(object.path) == picture)
            // By its first bytes, which a picture that was encoded anew would have too.
            let files = try FileManager.default.subpathsOfDirectory(atPath: place.folder.path.string)
            let pictures = files.filter { name in
                let file = try? place.content(place.folder.path.pushing(FilePath(name)))
                return !name.hasPrefix("store/") && file?.starts(with: [0xFF, 0xD8]) == true
            }
            #expect(pictures == ["drop/photo.jpg"])
            #expect(try place.content(place.drop.appending("photo.jpg")) == picture)
            #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.string) == [])
        }
    }

    @Test func `a slow, a hanging and a down destination keep nothing from a fourth, and say what holds them`()
        async throws
    {
        let closed = try FreePort.any()
        try await withStore { slow, slowSettings in
            try await withStore { hanging, hangingSettings in
                let gate = RequestGate()
                defer { gate.open() }
                hanging.faults.add(
                    S3Fault(.hold(gate), at: .putObject, times: nil),
                    S3Fault(.hold(gate), at: .createMultipartUpload, times: nil))
                let down = hangingSettings.replacing(":\(try await hanging.port())", with: ":\(closed)")
                let place = try Self.place(slow: slowSettings, hanging: hangingSettings, down: down)
                let agent = try await place.run()
                let sizes = (0..<40).map { $0 % 4 == 0 ? 17 << 20 : 4096 }
                for (number, size) in sizes.enumerated() {
                    try place.put(FilePath("\(number)"), bytes(size, seed: UInt64(number)))
                }
                try await agent.wait("all of it at the fourth") {
                    agent.lines("job.delivered").count { $0["destination"] == "fast" } == sizes.count
                }
                #expect(agent.lines("job.delivered").allSatisfy { ["fast", "store"].contains($0["destination"]) })
                try await agent.wait("each says what holds it") {
                    let said = try await Self.standings(place)
                    let slow = /^at its limit of 256 KiB\/s; \d+ files wait, about \d+ min$/
                    return said["store"]?.contains(slow) == true && said["hanging"]?.hasPrefix("sending ") == true
                        && said["down"]?.contains(/^it is down, asked again at [0-9:]+; 40 files wait$/) == true
                        && said["fast"] == nil
                }
                try await agent.kill()
            }
        }
    }

    /// One with three destinations that are slow, and a folder that is not.
    private static func place(slow: String, hanging: String, down: String) throws -> Place {
        let place = try Place(destination: slow + ", bandwidth: 256KiB/s")
        try place.configure(
            replacing: "destinations:\n",
            with: """
                destinations:
                  hanging: { \(hanging) }
                  down: { \(down) }
                  fast: { type: folder, path: library }

                """)
        try place.configure(replacing: "to: store", with: "to: [store, hanging, down, fast]")
        return place
    }

    private static func standings(_ place: Place) async throws -> [String: String] {
        let status = try await place.inlet("status", "--json", code: 0).object()
        return (status["destinations"] as? [[String: Any]] ?? []).reduce(into: [:]) {
            $0[$1["name"] as? String ?? ""] = $1["standing"] as? String
        }
    }

    @Test func `SIGTERM lets a running part end, and the next start sends only the rest`() async throws {
        try await withSpiral("parallel_parts: 1") { place, sandbox in
            sandbox.faults.add(Fault(.slowRead(bytesPerSecond: 4 << 20), at: .part, times: nil))
            let agent = try await place.run()
            let content = bytes(22 << 20)
            try place.put("slow.bin", content)
            try await agent.wait("the second part") { sandbox.traffic.counts[.part] ?? 0 >= 2 }
            #expect(try await agent.stop() == .code(0))
            #expect(sandbox.objects().isEmpty)
            #expect(sandbox.traffic.counts[.part] == 2)
            sandbox.faults.clear()
            let next = try await place.run()
            try await next.line("job.finished")
            #expect(sandbox.traffic.counts[.part] == 5)
            // Its own: a probe opens none.
            #expect(sandbox.traffic.counts[.create] == 1)
            #expect(try place.content(#require(sandbox.objects().first).path) == content)
            #expect(try await next.stop() == .code(0))
        }
    }

    @Test func `a second signal ends a stalled transfer at once with 130`() async throws {
        try await withSpiral { place, sandbox in
            sandbox.faults.add(Fault(.stall, at: .part, times: nil))
            let agent = try await place.run()
            try place.put("stalled.bin", bytes(6 << 20))
            try await agent.wait("a stalled part") { sandbox.traffic.counts[.part] ?? 0 >= 1 }
            agent.signal(SIGINT)
            try await agent.line("agent.stopping")
            agent.signal(SIGINT)
            #expect(try await agent.ending() == .code(130))
        }
    }

    @Test func `parts that outlast shutdown_timeout are given up, and the agent still ends with 0`() async throws {
        try await withSpiral { place, sandbox in
            try place.configure(replacing: "shutdown_timeout: 20s", with: "shutdown_timeout: 200ms")
            sandbox.faults.add(Fault(.stall, at: .part, times: nil))
            let agent = try await place.run()
            try place.put("stalled.bin", bytes(6 << 20))
            try await agent.wait("a stalled part") { sandbox.traffic.counts[.part] ?? 0 >= 1 }
            agent.signal(SIGTERM)
            // Before the minute after which the transfer would be given up as standing still.
            #expect(try await agent.ending(within: .seconds(45)) == .code(0))
            sandbox.faults.clear()
            let next = try await place.run()
            try await next.line("job.finished")
            #expect(sandbox.objects().map(\.key) == ["stalled.bin"])
            #expect(sandbox.openUploads().isEmpty)
        }
    }
}

/// libmagic is needed where a route asks what files hold, and only there.
@Suite struct MediaTypeTests {
    private static let asking = "validate: { media_type: \"video/*\" }"

    private static func hasLoaded(_ process: Int32) throws -> Bool {
        // Foundation reads no more than a page of such a file.
        let maps = try DurableFile.read(FilePath("/proc/\(process)/maps"), limit: 8 << 20)
        return String(decoding: maps, as: UTF8.self).contains("libmagic")
    }

    @Test(arguments: ["run", "check"])
    func `a route that asks for media types does not start without their library`(_ command: String) async throws {
        let place = try Place(route: [Self.asking])
        // libmagic(3): where its database is.
        let ended = try await place.inlet(command, environment: ["MAGIC": "/nonexistent/magic"], code: 78)
        let said = ended.output + ended.errors
        #expect(said.contains("media types: route 'all' asks for them"), "\(said)")
        #expect(said.contains("apt install libmagic1"), "\(said)")
    }

    @Test(.enabled(if: getuid() == 0, "needs root: what the agent has mapped is nobody else's to see"))
    func `neither the agent nor its helper loads it, also where a route asks`() async throws {
        for (route, isAsked) in [([], false), ([Self.asking], true)] {
            let (place, agent) = try await Place.running(route: route)
            try place.put("clip.mp4", Data("MZ".utf8) + Data(count: 126))
            try await agent.line(isAsked ? "file.rejected" : "job.finished")
            for process in try [agent.id] + agent.children { #expect(try !Self.hasLoaded(process)) }
            #expect(try await agent.stop() == .code(0))
        }
    }
    @Test func `it is given back when nobody asks, and loaded again for the next file`() async throws {
        let (place, agent) = try await Place.running(route: [Self.asking])
        let helper = try #require(try agent.children.first)
        for name in ["first.mp4", "second.mp4"] {
            try place.put(FilePath(name), Data("MZ".utf8) + Data(count: 126))
            try await agent.line("file.rejected") { $0.isAbout(name) }
            try await eventually("its reader has ended") { try InletProcess.children(of: helper).isEmpty }
        }
        #expect(try await agent.stop() == .code(0))
    }
}
