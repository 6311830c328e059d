// SPDX-License-Identifier: Apache-2.0
// Contains the style sheet and script of the HTML page. The script shows the details of a selected
// cell and copies commands.
#include "html.hpp"

namespace backplane::conformance::page {

std::string_view style() {
  return R"css(
:root{--bg:#f7f7f5;--top:#fff;--ink:#1b1f24;--soft:#59626d;--line:#dcdfe3;--pass:#0a6b49;--pass-bg:#ddf1e7;
--fail:#a8201a;--fail-bg:#fbe1de;--part:#7d5000;--part-bg:#fbecc8;--none:#59626d;--none-bg:#e9ebee;--bar:#3d6fb6}
@media (prefers-color-scheme:dark){:root{--bg:#121517;--top:#1b1f23;--ink:#e7e9eb;--soft:#a3abb4;--line:#343a41;
--pass:#66d6a8;--pass-bg:#123a2b;--fail:#ff9a91;--fail-bg:#511d19;--part:#f2c66d;--part-bg:#443410;--none:#a3abb4;
--none-bg:#2b3036;--bar:#7fabe8}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.5 system-ui,"Noto Sans",
"DejaVu Sans",sans-serif}
main{max-width:1180px;margin:0 auto;padding:24px 24px 48px}
h1,h2,h3,h4,p,ul,dl,dd,figure{margin:0;padding:0}
ul{list-style:none}
h1{font-size:34px;line-height:1.15;letter-spacing:-.01em}
h2{font-size:20px;margin-bottom:8px}
h3{font-size:15px;margin:16px 0 6px}
section{margin-top:40px}
code,.mono{font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.small{font-size:14px;color:var(--soft)}
.t{unicode-bidi:isolate;overflow-wrap:anywhere}
.count{color:var(--soft);font-weight:400}
.hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.mark{display:inline-block;border-radius:4px;padding:0 6px;font-size:14px;white-space:nowrap;background:var(--none-bg);
color:var(--none)}
.mark.pass{background:var(--pass-bg);color:var(--pass)}
.mark.fail{background:var(--fail-bg);color:var(--fail)}
.mark.partial{background:var(--part-bg);color:var(--part)}
.kind{color:var(--soft);font-size:14px;margin-bottom:10px}
.verdict{display:flex;gap:24px;justify-content:space-between;align-items:center;background:var(--top);padding:24px 28px;
border:1px solid var(--line);border-left:8px solid var(--none);border-radius:8px}
.verdict.pass{border-left-color:var(--pass)}.verdict.pass h1{color:var(--pass)}
.verdict.fail{border-left-color:var(--fail)}.verdict.fail h1{color:var(--fail)}
.verdict.partial{border-left-color:var(--part)}.verdict.partial h1{color:var(--part)}
.who{font-size:18px;margin-top:6px}.who span{color:var(--soft)}
.fraction{text-align:right;flex:none}
.fraction strong{display:block;font-size:34px;line-height:1.15;font-variant-numeric:tabular-nums}
.fraction span{color:var(--soft);font-size:14px}
.bar{display:flex;gap:2px;height:10px;margin-top:16px}
.bar i{min-width:3px;border-radius:2px;background:var(--none);opacity:.45}
.bar .pass{background:var(--pass);opacity:1}.bar .fail{background:var(--fail);opacity:1}
.legend,.chips{display:flex;flex-wrap:wrap;gap:6px 20px;margin-top:8px;font-size:14px}
.statement{margin-top:14px;max-width:76ch}
.cards,.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(250px,1fr));gap:16px}
.card,.facts dl,figure,article{background:var(--top);border:1px solid var(--line);border-radius:8px;padding:14px 16px}
.card h3{margin:0 0 4px;font-size:17px}
.card ul{list-style:disc;padding-left:18px;font-size:14px;margin-top:4px}
.chips li{background:var(--top);border:1px solid var(--line);border-radius:8px;padding:4px 10px}
details{margin-top:10px}
summary{cursor:pointer;padding:4px 0}
summary span{color:var(--soft);margin-left:6px}
article{margin-top:8px;padding:10px 14px}
article h4{font-weight:400;display:flex;gap:8px;flex-wrap:wrap;align-items:baseline}
article h4 code{font-weight:600;overflow-wrap:anywhere}
.reason{margin:6px 0;white-space:pre-wrap;max-height:22em;overflow:auto}
.line{display:flex;gap:8px;align-items:flex-start;background:var(--bg);border:1px solid var(--line);border-radius:6px;
padding:6px 10px}
.line code{flex:1;overflow-wrap:anywhere;user-select:all;-webkit-user-select:all}
.line button{font:inherit;font-size:13px;color:inherit;background:var(--top);border:1px solid var(--line);
border-radius:4px;padding:0 8px;cursor:pointer}
.more{font-size:14px;color:var(--soft);margin-top:8px}
.absent li{padding:2px 0;border-top:1px solid var(--line);font-size:14px;overflow-wrap:anywhere}
.absent span{color:var(--soft)}
.wide{overflow-x:auto;margin-top:8px}
table{border-collapse:separate;border-spacing:2px;font-size:14px}
th{text-align:left;font-weight:600}
.n{text-align:right;font-variant-numeric:tabular-nums}
.plain{border-spacing:0;width:100%}
.plain th,.plain td{padding:4px 12px 4px 0;border-bottom:1px solid var(--line)}
.plain .n{padding:4px 0 4px 12px}
.matrix{table-layout:fixed;width:100%}
.matrix thead td{width:150px}
.matrix thead th{text-align:center;position:sticky;top:0;background:var(--bg);z-index:1;padding:6px 0}
.matrix tbody th{font-weight:400;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.matrix .part th{font-weight:600;padding-top:10px}
.matrix tbody td{position:relative;text-align:center;border-radius:4px;background:var(--none-bg);color:var(--none);cursor:default;
padding:2px 0;white-space:nowrap}
.matrix i{font-style:normal;font-size:12px}
.matrix .pass{background:var(--pass-bg);color:var(--pass)}
.matrix .fail{background:var(--fail-bg);color:var(--fail);outline:2px solid var(--fail);outline-offset:-2px;font-weight:600}
.matrix .partial{background:var(--part-bg);color:var(--part)}
.matrix .void{background:none}
.matrix td.on{outline:2px solid var(--ink);outline-offset:-2px}
#detail{position:fixed;left:0;right:0;bottom:0;z-index:2;padding:10px 24px;background:var(--ink);color:var(--bg);text-align:center}
#detail[hidden]{display:none}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(215px,1fr));gap:12px;margin:12px 0}
figure{padding:10px 12px}
figcaption{display:flex;justify-content:space-between;gap:8px;font-size:14px;flex-wrap:wrap}
figcaption span{color:var(--soft)}figcaption .bad{color:var(--fail);font-weight:600}
svg{display:block;width:100%;margin-top:6px}
svg .in{fill:var(--bar)}svg .over{fill:var(--fail)}svg .beyond{fill:var(--fail-bg)}
svg .axis{stroke:var(--line)}svg .bound{stroke:var(--fail);stroke-width:2}
svg text{font-size:11px;fill:var(--soft)}svg .mid{text-anchor:middle}svg .strong{fill:var(--fail)}
.facts dl{font-size:14px}
.facts dl>dt{font-weight:600;font-size:15px;margin-bottom:4px}
.facts dl div{padding:3px 0;border-top:1px solid var(--line)}
.facts div dt{color:var(--soft);font-size:13px}
.facts .mono{font-size:12px;overflow-wrap:anywhere}
#facts p{margin:12px 0 6px}
footer{margin-top:40px;color:var(--soft);font-size:14px}
@media (min-width:760px){.wide{overflow:visible}}
@media (max-width:759px){
main{padding:14px 12px 32px}
h1{font-size:26px}
.verdict{display:block;padding:16px}
.who{font-size:16px}
.fraction{text-align:left;margin-top:12px}
.fraction strong{display:inline;font-size:24px;margin-right:8px}
section{margin-top:30px}
.matrix{font-size:12px;border-spacing:1px}
.matrix thead td{width:78px}
.matrix thead th{font-size:11px}
.matrix i{display:block;font-size:9px;line-height:1}
.matrix tbody th{position:sticky;left:0;background:var(--bg);z-index:1}
.figures{grid-template-columns:repeat(auto-fill,minmax(160px,1fr));gap:8px}
figcaption{display:block}figcaption span{display:block;font-size:13px}
.plain td:nth-child(2){white-space:nowrap}
.plain th,.plain td{padding-right:8px}.plain .n{padding-left:6px}
}
@media print{
:root{--bg:#fff;--top:#fff;--ink:#000;--soft:#444;--line:#bbb;--pass:#0a5c40;--pass-bg:#e3f3eb;--fail:#9c1b15;--fail-bg:#fbe5e3;
--part:#6d4600;--part-bg:#fbf0d6;--none:#444;--none-bg:#eee;--bar:#3d6fb6}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
body{font-size:11px}main{max-width:none;padding:0}
section{margin-top:20px}article,figure,.card,tr{break-inside:avoid}h2,h3{break-after:avoid}
.line button,#detail{display:none}.matrix thead th{position:static}
.figures{grid-template-columns:repeat(4,1fr)}.reason{max-height:none}
}
)css";
}

std::string_view script() {
  return R"js(
"use strict";
const detail = document.getElementById("detail");
let marked = null;
const show = cell => {
  if (marked) marked.classList.remove("on");
  marked = cell;
  detail.hidden = !cell;
  if (!cell) return;
  cell.classList.add("on");
  detail.textContent = cell.dataset.text;
};
const cellOf = event => event.target instanceof Element ? event.target.closest(".matrix td[data-text]") : null;
for (const cell of document.querySelectorAll(".matrix td[title]")) {
  cell.dataset.text = cell.title;
  cell.removeAttribute("title");
}
if (detail) {
  document.addEventListener("pointerover", event => show(cellOf(event)));
  document.addEventListener("click", event => show(cellOf(event)));
  document.addEventListener("keydown", event => { if (event.key === "Escape") show(null); });
}
for (const line of document.querySelectorAll(".line")) {
  const code = line.querySelector("code"), button = document.createElement("button");
  button.type = "button";
  button.textContent = "copy";
  button.addEventListener("click", () => {
    const range = document.createRange();
    range.selectNodeContents(code);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    const done = () => { button.textContent = "copied"; setTimeout(() => { button.textContent = "copy"; }, 1500); };
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, () => document.execCommand("copy") && done());
    else if (document.execCommand("copy")) done();
  });
  line.append(button);
}
)js";
}

}  // namespace backplane::conformance::page
