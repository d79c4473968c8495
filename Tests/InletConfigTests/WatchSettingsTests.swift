import InletConfig
import InletCore
import SystemPackage
import Testing

/// `mode:` and `poll:` of a watched folder.
struct WatchModeTests {
    @Test(arguments: [
        ("", WatchSettings.Mode.auto, Duration.seconds(10)), (", mode: auto, poll: 1m", .auto, .seconds(60)),
        (", mode: poll", .poll, .seconds(10)), (", mode: inotify, poll: 1s", .inotify, .seconds(1)),
    ])
    func `a folder says how its changes are noticed`(keys: String, mode: WatchSettings.Mode, poll: Duration) throws {
        let watch = try #require(try parse(small(watch: keys)).settings.watch.first)
        #expect(watch.mode == mode)
        #expect(watch.poll == poll)
    }

    @Test(arguments: [
        (", mode: events", "auto, inotify, poll"), (", poll: 500ms", "at least 1s"), (", poll: off", "not a duration"),
    ])
    func `another word, a pause below a second and none at all are refused`(keys: String, why: String) throws {
        let errors = try #require(throws: ConfigErrors.self) { try parse(small(watch: keys)) }
        #expect("\(errors)".contains(why), "\(errors)")
    }
}

/// Watched folders that come and go with their volumes.
struct VolumeSettingsTests {
    @Test func `a path with wildcards is a pattern, and its volumes are left as they are`() throws {
        let watch = try #require(try parse(small(path: "\"/media/*/DCIM\"")).settings.watch.first)
        #expect(watch.pattern?.parent == "/media")
        #expect(!watch.volumeWrites && watch.volumeDoneAfter == nil)
        let two = try parse(small(path: "\"/media/*/DCIM\", volume_done_after: 2")).settings.watch.first
        #expect(two?.volumeDoneAfter == 2)
        #expect(watch.covers("/media/EOS/DCIM"))
        #expect(!watch.covers("/media/EOS/DCIM/100CANON"))
        #expect(watch.at("/media/EOS/DCIM").path == "/media/EOS/DCIM")
        #expect(try parse(small(path: "/srv/drop")).settings.watch.first?.pattern == nil)
    }

    @Test(arguments: [", on_success: delete", ", on_success: archive", ", on_failure: quarantine"])
    func `what writes to a volume must be meant`(route: String) throws {
        let refused = complaints(small(path: "\"/media/*/DCIM\"", route: route))
        #expect(refused.contains("volume_writes") && refused.contains("route 'all'"), "\(refused)")
        for (word, isAllowed) in [("true", true), ("false", false)] {
            let text = small(path: "\"/media/*/DCIM\", volume_writes: \(word)", route: route)
            #expect(try parse(text).settings.watch.first?.volumeWrites == isAllowed)
        }
        #expect(complaints(small(path: "/srv/drop", route: route)).isEmpty)
    }

    @Test(arguments: ["/media/EOS/DCIM", "\"/media/EOS*/DCIM\"", "/media/EOS/DCIM/100CANON"])
    func `a folder that a pattern stands for cannot be watched beside it`(other: String) {
        for (one, two) in [("\"/media/*/DCIM\"", other), (other, "\"/media/*/DCIM\"")] {
            #expect(complaints(small(path: "\(one) }, { path: \(two)")).contains("can mean the same folder"))
        }
        #expect(complaints(small(path: "\"/media/*/DCIM\" }, { path: /media/EOS/MUSIC")).isEmpty)
    }

    @Test(arguments: [
        ("/srv/drop, volume_done_after: 2", "pattern"),
        ("\"/media/*/DCIM\", volume_done_after: 0", "volume_done_after"),
        ("\"/media/**/DCIM\"", "'**'"), ("\"/media/[a/DCIM\"", "["), ("/srv/drop, volume_writes: true", "pattern"),
    ])
    func `what cannot be a pattern is refused`(watch: String, word: String) {
        #expect(complaints(small(path: watch)).contains(word))
    }
}

/// Whose files a watched folder takes.
struct OwnerTests {
    @Test(arguments: [
        ("", SourceRule()), (", owners: [root, 1004]", SourceRule(owners: [0, 1004])),
        (", owners: root", SourceRule(owners: [0])), (", hard_links: refuse", SourceRule(hardLinks: .refuse)),
        (", owners: ['0'], hard_links: allow", SourceRule(owners: [0])),
    ])
    func `users are named by name or number`(_ watch: String, _ rule: SourceRule) throws {
        #expect(try parse(small(watch: watch)).settings.watch.first?.sources == rule)
    }

    @Test(arguments: [
        (", owners: [root, nobody-has-this]", "2:", "'nobody-has-this'"),
        (", owners: [4294967295]", "2:", "'4294967295'"), (", owners: [-1]", "2:", "'-1'"),
        (", owners: []", "2:", "no user"), (", hard_links: perhaps", "2:", "hard_links"),
    ])
    func `a user that there is not is an error where it stands`(_ watch: String, line: String, word: String) {
        let found = complaints(small(watch: watch))
        #expect(found.contains(word) && found.contains(":\(line)"), "\(found)")
    }

    @Test func `the unknown one of several is pointed at`() {
        let found = complaints(small(watch: ", owners: [root, nobody-has-this]"))
        // watch: [{ path: /srv/drop, owners: [root, nobody-has-this
        #expect(found.contains(":2:43:"), "\(found)")
    }
}
