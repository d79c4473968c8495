extension WebFiles {
    /// What only some views have.
    static let viewStyle = #"""
        section, .card, .head {
          background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .8rem .95rem; margin: 0 0 .9rem;
          min-width: 0;
        }
        section > :last-child, .card > :last-child, .head > :last-child { margin-bottom: 0; }
        .badge {
          display: inline-block; border-radius: 9px; padding: 0 .5rem; font-size: .84rem; font-weight: 550;
          background: var(--neutral-back); color: var(--text); white-space: nowrap;
        }
        .badge::before { margin-right: .35em; content: "○" / ""; }
        .badge.good { background: var(--good-back); color: var(--good); }
        .badge.good::before { content: "✓" / ""; }
        .badge.bad { background: var(--bad-back); color: var(--bad); }
        .badge.bad::before { content: "!" / ""; font-weight: 800; }
        .badge.waiting { background: var(--wait-back); color: var(--wait); }
        .badge.waiting::before { content: "◷" / ""; }
        .badge.moving { background: var(--tint); color: var(--accent); }
        .badge.moving::before { content: "→" / ""; }

        .health { border-left: 5px solid var(--good); }
        .health.bad { border-left-color: var(--bad); }
        .health.waiting { border-left-color: var(--wait); }
        .sentence { font-size: 1.2rem; font-weight: 600; margin: 0; }
        .health .dot {
          display: inline-block; width: .7rem; height: .7rem; border-radius: 50%; background: var(--good); margin-right: .55rem;
        }
        .health.bad .dot { background: var(--bad); border-radius: 2px; }
        .health.waiting .dot { background: var(--wait); }
        .health ul { list-style: none; padding: 0; margin: .5rem 0 0; }
        .health ul:empty { display: none; }
        .health li { padding: .2rem 0; overflow-wrap: anywhere; }
        .health li p { margin: .1rem 0 0; }

        .figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .6rem; margin: 0 0 .9rem; }
        .figures > div { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .55rem .8rem; min-width: 0; }
        .figures dt { color: var(--muted); font-size: .86rem; }
        .figures dd { margin: 0; font-size: 1.4rem; font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap; }
        .figures dd.small { font-size: .84rem; font-weight: 400; white-space: normal; }

        .graph { margin: 0; }
        .plot { display: flex; gap: .5rem; height: 8rem; }
        .plot svg { flex: 1; min-width: 0; height: 100%; border-bottom: 1px solid var(--line); }
        .axis {
          display: flex; flex-direction: column; justify-content: space-between; margin: 0; color: var(--muted); font-size: .8rem;
          width: 5.2rem; flex: none; text-align: right;
        }
        .axis.x { flex-direction: row; width: auto; padding-left: 5.7rem; }
        figcaption { margin-top: .4rem; color: var(--muted); font-size: .86rem; }
        .grid { stroke: var(--line); vector-effect: non-scaling-stroke; }
        .line { fill: none; stroke: var(--accent); stroke-width: 1.6; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
        .area { fill: var(--accent); opacity: .14; }
        .spark { width: 100%; height: 1.8rem; display: block; margin: .3rem 0; }

        table { border-collapse: collapse; width: 100%; }
        caption { text-align: left; color: var(--muted); font-size: .86rem; padding-bottom: .3rem; }
        th, td { text-align: left; vertical-align: top; padding: .35rem .6rem .35rem 0; border-bottom: 1px solid var(--line); }
        thead th { color: var(--muted); font-size: .84rem; font-weight: 550; white-space: nowrap; }
        tbody th { font-weight: 400; overflow-wrap: anywhere; }
        tbody tr:last-child > * { border-bottom: 0; }
        tbody tr:focus-within, tr.chosen { background: var(--tint); }
        .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; padding-right: 1rem; }
        .bars { width: 45%; }
        td.where { min-width: 13rem; }
        .list tbody th { width: 38%; }
        .pick { display: flex; gap: .6rem; align-items: flex-start; }
        .pick input { margin-top: .2rem; }
        .inline { list-style: none; padding: 0; margin: 0; }
        .inline li { display: inline; }
        .inline li + li::before { content: ", "; }
        .list .why, .card .why { margin: .1rem 0 0; color: var(--bad); }
        .why + .facts, .sentence + .facts { margin-top: .5rem; }
        .plain { list-style: none; padding: 0; margin: 0; overflow-wrap: anywhere; }

        progress {
          display: block; width: 100%; height: .5rem; border: 0; border-radius: 4px; overflow: hidden; appearance: none;
          background: var(--neutral-back);
        }
        progress::-webkit-progress-bar { background: var(--neutral-back); }
        progress::-webkit-progress-value { background: var(--accent); border-radius: 4px; }
        progress::-moz-progress-bar { background: var(--accent); border-radius: 4px; }
        .progress .small { font-variant-numeric: tabular-nums; }

        .facts { display: grid; gap: .15rem .9rem; margin: 0 0 .6rem; }
        .facts > div { display: grid; grid-template-columns: minmax(5.5rem, 8rem) minmax(0, 1fr); gap: .5rem; }
        .facts dt { color: var(--muted); }
        .facts dd { margin: 0; overflow-wrap: anywhere; }
        .cards {
          list-style: none; padding: 0; display: grid; gap: .9rem;
          grid-template-columns: repeat(auto-fill, minmax(min(22rem, 100%), 1fr));
        }
        .cards.wide { grid-template-columns: minmax(0, 1fr); }
        .card { margin: 0; }
        .config-fault { border-left: 4px solid var(--bad); padding-left: .75rem; }
        .config-fault pre { white-space: pre; }
        .path { font-size: 1.05rem; font-weight: 600; }
        .filters { display: flex; flex-wrap: wrap; gap: .5rem .75rem; align-items: flex-end; margin-bottom: .75rem; }
        .filters label { display: block; margin-bottom: .15rem; }
        .filters .grow { flex: 1 1 16rem; }
        .filters .grow input { width: 100%; }
        .filters .clear { padding: .3rem 0; }
        .bar { display: flex; flex-wrap: wrap; align-items: center; gap: .2rem 1rem; margin-bottom: .4rem; }
        .bar .quiet { color: var(--bad); }
        .pager { display: flex; gap: .5rem; margin-top: .75rem; }
        .latest { list-style: none; padding: 0; }
        .latest li, .lines li { padding: .18rem 0; overflow-wrap: anywhere; }
        .latest time, .lines time { color: var(--muted); font-variant-numeric: tabular-nums; margin-right: .35rem; }
        .field { color: var(--muted); margin-left: .35rem; }
        .lines {
          list-style: none; margin: 0; padding: .4rem .75rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
          height: max(16rem, calc(100vh - 18rem)); overflow: auto; font: .88rem/1.45 var(--mono);
        }
        .lines .debug { color: var(--muted); }
        .balance { font-variant-numeric: tabular-nums; margin: 0; }
        .keys > div { display: flex; gap: .75rem; padding: .15rem 0; }
        .keys dt { flex: 0 0 10rem; }
        .keys dd { margin: 0; }
        .login { max-width: 24rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 1.1rem; }
        .login input { width: 100%; margin: .2rem 0 .4rem; }

        @media (max-width: 46rem) {
          td.where { min-width: 0; }
          table, caption, tbody, tr, tbody th, td { display: block; width: auto !important; }
          thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
          tbody tr { padding: .45rem 0; border-bottom: 1px solid var(--line); }
          tbody tr:last-child { border-bottom: 0; padding-bottom: 0; }
          .figures > :last-child:nth-child(odd) { grid-column: 1 / -1; }
          tbody th, td { border: 0; padding: .1rem 0; text-align: left; }
          td[data-label]::before { content: attr(data-label) ": " / ""; color: var(--muted); font-size: .86rem; }
          td > .progress, td > .plain { display: block; }
          .inline { display: inline; }
          .number { text-align: left; white-space: normal; }
          .facts > div { grid-template-columns: 6rem minmax(0, 1fr); }
          .keys dt { flex-basis: 8rem; }
          .filters > div { flex: 1 1 8rem; min-width: 0; }
          .filters input, .filters select { width: 100%; }
          .plot { height: 6.5rem; }
        }

        """#
}
