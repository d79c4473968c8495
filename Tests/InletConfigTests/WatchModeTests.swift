import InletConfig
import InletCore
import Testing

/// `mode:` and `poll:` of a watched folder.
struct WatchModeTests {
    private func text(_ watch: String) -> String {
        """
        destinations: { lib: { type: folder, path: /lib } }
        watch: [{ path: /srv/drop\(watch) }]
        routes: [{ name: all, to: lib }]
        """
    }

    @Test(arguments: [
        ("", WatchSettings.Mode.auto, Duration.seconds(10)), (", mode: auto, poll: 1m", .auto, .seconds(60)),
        (", mode: poll", .poll, .seconds(10)), (", mode: inotify, poll: 1s", .inotify, .seconds(1)),
    ])
    func `a folder says how its changes are noticed`(keys: String, mode: WatchSettings.Mode, poll: Duration) throws {
        let watch = try #require(try parse(text(keys)).settings.watch.first)
        #expect(watch.mode == mode)
        #expect(watch.poll == poll)
    }

    @Test(arguments: [
        (", mode: events", "auto, inotify, poll"), (", poll: 500ms", "at least 1s"), (", poll: off", "not a duration"),
    ])
    func `another word, a pause below a second and none at all are refused`(keys: String, why: String) throws {
        let errors = try #require(throws: ConfigErrors.self) { try parse(text(keys)) }
        #expect("\(errors)".contains(why), "\(errors)")
    }
}
