"""Detection post-processing: box decoding, IoU, non-maximum suppression in a loop, quantiles, sort, top-k, metrics."""

from __future__ import annotations

from typing import Any

from formula import wave

import lamina as torch
from lamina import Tensor


def box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    area1 = (boxes1[:, 2] - boxes1[:, 0]) * (boxes1[:, 3] - boxes1[:, 1])
    area2 = (boxes2[:, 2] - boxes2[:, 0]) * (boxes2[:, 3] - boxes2[:, 1])
    lt = torch.max(boxes1[:, None, :2], boxes2[:, :2])
    rb = torch.min(boxes1[:, None, 2:], boxes2[:, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[:, :, 0] * wh[:, :, 1]
    return inter / (area1[:, None] + area2 - inter)


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    order = scores.argsort(descending=True)
    keep = []
    while order.numel() > 0:
        i = order[0]
        keep.append(i.item())
        if order.numel() == 1:
            break
        iou = box_iou(boxes[i].unsqueeze(0), boxes[order[1:]]).squeeze(0)
        order = order[1:][iou <= iou_threshold]
    return torch.tensor(keep, dtype=torch.long)


def decode(anchors, deltas):
    wh = anchors[:, 2:] - anchors[:, :2]
    centers = anchors[:, :2] + 0.5 * wh
    pred_centers = deltas[:, :2] * wh * 0.3 + centers
    pred_wh = torch.exp(deltas[:, 2:].clamp(max=4.0) * 0.3) * wh
    return torch.cat((pred_centers - 0.5 * pred_wh, pred_centers + 0.5 * pred_wh), dim=1)


def make_anchors(height, width, stride, sizes):
    ys, xs = torch.meshgrid(torch.arange(height) * stride, torch.arange(width) * stride, indexing="ij")
    shifts = torch.stack((xs, ys, xs, ys), dim=-1).reshape(-1, 1, 4).float()
    half = torch.tensor(sizes, dtype=torch.float32)[:, None] / 2
    base = torch.cat([-half, -half, half, half], dim=1)
    return (shifts + base).reshape(-1, 4)


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        _, pred = output.topk(maxk, 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / target.size(0)) for k in topk]


def confusion(pred, target, classes):
    index = target * classes + pred
    return torch.bincount(index, minlength=classes**2).reshape(classes, classes)


def calibrate(scores):
    low, mid, high = torch.quantile(scores, torch.tensor([0.1, 0.5, 0.9]))
    values, order = torch.sort(scores, descending=True)
    ranks = torch.empty_like(order).scatter_(0, order, torch.arange(len(scores)))
    cut = values.cumsum(0) / values.sum()
    kept = torch.masked_select(values, cut < 0.6)
    hist = torch.histc(scores, bins=4, min=0.0, max=1.0)
    return low, mid, high, ranks, kept, hist, scores.kthvalue(3).values, torch.median(scores)


def run(compile: Any) -> list[Any]:
    anchors = make_anchors(3, 4, 8, (8.0, 14.0))
    boxes = compile(decode)(anchors, wave(24, 4))
    scores = wave(24, phase=2).sigmoid()
    iou = compile(box_iou)(boxes, boxes)
    keep = compile(nms)(boxes, scores, 0.2)
    logits, target = wave(12, 6), torch.arange(12) % 6
    results = [boxes.sum(), iou.sum(), keep, *compile(accuracy)(logits, target, topk=(1, 3))]
    results += [compile(confusion)(logits.argmax(1), target, 6).diagonal(), *compile(calibrate)(scores)]
    inside = torch.nonzero((boxes[:, 0] > 0) & (boxes[:, 1] > 0), as_tuple=True)[0]
    any_overlap = torch.any(torch.triu(iou, diagonal=1) > 0.5, dim=1)
    return [*results, inside, any_overlap, torch.isclose(iou.diagonal(), torch.ones(24)).all().item()]
