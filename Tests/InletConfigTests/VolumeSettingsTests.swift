import InletConfig
import InletCore
import SystemPackage
import Testing

/// Watched folders that come and go with their volumes.
struct VolumeSettingsTests {
    private func text(_ watch: String, route: String = "") -> String {
        """
        destinations: { lib: { type: folder, path: /lib } }
        watch: [{ path: \(watch) }]
        routes: [{ name: all, to: lib\(route) }]
        """
    }

    @Test func `a path with wildcards is a pattern, and its volumes are left as they are`() throws {
        let watch = try #require(try parse(text("\"/media/*/DCIM\"")).settings.watch.first)
        #expect(watch.pattern?.parent == "/media")
        #expect(!watch.volumeWrites && watch.volumeDoneAfter == nil)
        let two = try parse(text("\"/media/*/DCIM\", volume_done_after: 2")).settings.watch.first
        #expect(two?.volumeDoneAfter == 2)
        #expect(watch.covers("/media/EOS/DCIM"))
        #expect(!watch.covers("/media/EOS/DCIM/100CANON"))
        #expect(watch.at("/media/EOS/DCIM").path == "/media/EOS/DCIM")
        #expect(try parse(text("/srv/drop")).settings.watch.first?.pattern == nil)
    }

    @Test(arguments: [", on_success: delete", ", on_success: archive", ", on_failure: quarantine"])
    func `what writes to a volume must be meant`(route: String) throws {
        let refused = complaints(text("\"/media/*/DCIM\"", route: route))
        #expect(refused.contains("volume_writes") && refused.contains("route 'all'"), "\(refused)")
        for (word, isAllowed) in [("true", true), ("false", false)] {
            let text = text("\"/media/*/DCIM\", volume_writes: \(word)", route: route)
            #expect(try parse(text).settings.watch.first?.volumeWrites == isAllowed)
        }
        #expect(complaints(text("/srv/drop", route: route)).isEmpty)
    }

    @Test(arguments: ["/media/EOS/DCIM", "\"/media/EOS*/DCIM\"", "/media/EOS/DCIM/100CANON"])
    func `a folder that a pattern stands for cannot be watched beside it`(other: String) {
        for (one, two) in [("\"/media/*/DCIM\"", other), (other, "\"/media/*/DCIM\"")] {
            #expect(complaints(text("\(one) }, { path: \(two)")).contains("can mean the same folder"))
        }
        #expect(complaints(text("\"/media/*/DCIM\" }, { path: /media/EOS/MUSIC")).isEmpty)
    }

    @Test(arguments: [
        ("/srv/drop, volume_done_after: 2", "pattern"),
        ("\"/media/*/DCIM\", volume_done_after: 0", "volume_done_after"),
        ("\"/media/**/DCIM\"", "'**'"), ("\"/media/[a/DCIM\"", "["), ("/srv/drop, volume_writes: true", "pattern"),
    ])
    func `what cannot be a pattern is refused`(watch: String, word: String) {
        #expect(complaints(text(watch)).contains(word))
    }
}
