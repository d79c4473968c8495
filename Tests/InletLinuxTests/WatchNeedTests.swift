import Testing

@testable import InletLinux

@Suite struct WatchNeedTests {
    private func lines(
        _ directories: Int, of limit: Int?, _ instances: Int, of instanceLimit: Int?
    ) -> [(isMet: Bool, text: String)] {
        WatchNeed(directories: directories, limit: limit).findings(instances: instances, instanceLimit: instanceLimit)
    }

    @Test func `what there is room for is counted, up to the last one`() {
        let found = lines(8192, of: 8192, 128, of: 128)
        #expect(found.map(\.isMet) == [true, true])
        #expect(
            found.map(\.text) == [
                "8192 of 8192 needed (fs.inotify.max_user_watches)",
                "128 of 128 inotify instances needed (fs.inotify.max_user_instances)",
            ])
    }

    @Test func `too few watches are said with the line that raises the limit, and so are too few instances`() {
        let watches = lines(8193, of: 8192, 1, of: 128)
        #expect(watches.map(\.isMet) == [false, true])
        let remedy = WatchNeed(directories: 8193, limit: 8192).remedy
        #expect(
            watches[0].text
                == "8193 of 8192 needed (fs.inotify.max_user_watches); the rest is polled. Raise it with '\(remedy)'")
        let instances = lines(1, of: 8192, 129, of: 128)
        #expect(instances.map(\.isMet) == [true, false])
        #expect(
            instances[1].text
                == "129 of 128 inotify instances needed (fs.inotify.max_user_instances); the rest is polled. "
                + "Raise it with 'sysctl fs.inotify.max_user_instances=1024'")
    }

    @Test(arguments: [(129, 128), (1024, 1023), (5001, 5000), (1_000_000, 999_999)])
    func `the limit that is asked for has room for all, and is above the present one`(needed: Int, limit: Int) throws {
        let text = try #require(lines(0, of: nil, needed, of: limit).first).text
        let asked = try #require(text.split(separator: "=").last.flatMap { Int($0.dropLast()) })
        #expect(asked > limit && asked >= needed)
    }

    @Test func `where the kernel names no limit nothing is said`() {
        #expect(lines(1_000_000, of: nil, 1_000_000, of: nil).isEmpty)
        #expect(lines(1, of: nil, 1, of: 128).map(\.isMet) == [true])
    }
}
